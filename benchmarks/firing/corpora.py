"""The models that are counted: for each corpus, their names, and what is done with one of them."""

from __future__ import annotations

import contextlib
import importlib
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from firing import forms
from firing.forms import Keep

HERE = Path(__file__).parent.parent
NETWORK_WAYS = (("raw", False), ("ts", True))
"""The exports of torch itself that are simplified for a network: the way, and whether its axes are dynamic."""
SUITES = ("modules", "ops", "opsets", "torchvision_models", "transformers_models")
"""The suites of `export.py`."""


@dataclass(frozen=True)
class Corpus:
    """A collection of models. `measure` takes a name, and a function to which it hands the notes of each form."""

    names: Callable[[], Sequence[str]]
    measure: Callable[[str, Keep], None]


def _networks() -> list[str]:
    from models.architectures import ARCHITECTURES

    return list(ARCHITECTURES)


def _network(name: str, keep: Keep) -> None:
    from models.architectures import build
    from models.exporting import export

    network = build(name)
    forms.exported(keep, network.module, tuple(network.inputs.values()), {}, network.dynamic, verify=False)
    with tempfile.TemporaryDirectory(prefix="fired-") as folder:
        for way, dynamic in NETWORK_WAYS:
            path = Path(folder) / f"{way}_{dynamic}.onnx"
            if export(name, way, dynamic, path) is None:
                keep(forms.of_file(path))


def _idioms() -> list[str]:
    from firing.idioms import idioms

    return list(idioms())


def _idiom(name: str, keep: Keep) -> None:
    import torch
    from models.exporting import WAYS

    from firing.idioms import idioms

    module, example, axes = idioms()[name]
    module.eval()
    forms.exported(keep, module, (example,), {}, {"x": axes}, verify=False)
    with tempfile.TemporaryDirectory(prefix="fired-") as folder:
        for way in ("raw", "ts"):
            path = Path(folder) / f"{way}.onnx"
            with contextlib.suppress(Exception):  # torch's exporters do not know every form
                torch.onnx.export(module, (example,), path, **WAYS[way])
                keep(forms.of_file(path))


def _shipped() -> list[str]:
    """The files of the packages of `models/shipped.py`, and the networks that onnx ships."""
    from models.shipped import LIGHT, PACKAGES

    root = Path(sysconfig.get_path("purelib"))
    found = [path for package in PACKAGES for path in sorted((root / package).rglob("*.onnx"))]
    return [str(path) for path in (*found, *sorted((_onnx().parent / LIGHT).glob("*.onnx")))]


def _onnx() -> Path:
    import onnx

    return Path(onnx.__file__).parent


def _standard() -> list[str]:
    """The test models of the ONNX standard that onnx ships: one for each case of each operator."""
    return [str(path) for path in sorted((_onnx() / "backend" / "test" / "data").rglob("model.onnx"))]


def _file(name: str, keep: Keep) -> None:
    import onnx
    from models.shipped import LIGHT, constant

    if LIGHT.name not in Path(name).parts:
        keep(forms.of_file(Path(name)))
        return
    with tempfile.TemporaryDirectory(prefix="fired-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(constant(onnx.load(name)), path)
        keep(forms.of_file(path))


def _converted() -> list[str]:
    """The files of `corpus.py` that other converters made; none if that benchmark did not run."""
    return [str(path) for path in sorted((HERE.parent / ".bench-corpus" / "converted").glob("*.onnx"))]


def _packaged() -> list[str]:
    from packages.case import MODELS, cases

    found: list[str] = []
    for package in MODELS:
        try:
            found += cases(package)
        except (ImportError, OSError) as error:  # a library that does not load
            print(f"{package} is left out: {error}", flush=True)
    return found


def _package(name: str, keep: Keep) -> None:
    from packages.case import arguments, cases

    case = cases(name.partition("/")[0])[name]
    args, kwargs = arguments(case.example())
    forms.exported(keep, case.module(), args, kwargs, case.axes, verify=True)


def _sources() -> list[str]:
    """The models of packages and of the suites of whole models."""
    suites = [suite for suite in SUITES if suite.endswith("_models")]
    found = [f"{suite}/{name}" for suite in suites for name in importlib.import_module(f"exporting.{suite}").names()]
    return [f"packages/{name}" for name in _packaged()] + found


def _source(name: str, keep: Keep) -> None:
    """Lets the linter read a model's code, without an export."""
    from packages.case import arguments, cases

    suite, _, name = name.partition("/")
    if suite == "packages":
        case = cases(name.partition("/")[0])[name]
        keep(forms.linted(case.module(), *arguments(case.example())))
        return
    for call in importlib.import_module(f"exporting.{suite}").calls(name):
        keep(forms.linted(call.module, call.args, dict(call.kwargs)))


def _suite(suite: str) -> Corpus:
    def measure(name: str, keep: Keep) -> None:
        from exporting.exporters import dynamic_axes

        for call in importlib.import_module(f"exporting.{suite}").calls(name):
            verify, axes = suite not in QUICK, dynamic_axes(call)
            forms.exported(keep, call.module, call.args, dict(call.kwargs), axes, verify=verify, opset=call.opset)

    return Corpus(lambda: importlib.import_module(f"exporting.{suite}").names(), measure)


QUICK = ("ops", "opsets")
"""The suites of single layers, which are exported without verification: no branch or loop is in them."""


CORPORA = {
    "shipped": Corpus(_shipped, _file),
    "standard": Corpus(_standard, _file),
    "targets": Corpus(_shipped, lambda name, keep: keep(forms.checked(Path(name)))),
    "converted": Corpus(_converted, _file),
    "architectures": Corpus(_networks, _network),
    "idioms": Corpus(_idioms, _idiom),
    "packages": Corpus(_packaged, _package),
    "sources": Corpus(_sources, _source),
    **{suite: _suite(suite) for suite in SUITES},
}
