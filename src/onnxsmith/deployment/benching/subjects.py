"""Lists the subjects of a benchmark: models on runtimes. Every member of `runtimes/` gives subjects with the models
that the runtime can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.exporter import factory
from onnxsmith.graph.files.load import TEXT_SUFFIXES
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes.base import Options, Preparer, Runtime, Session, Source

TORCH = {"torch": "torch-eager", "torch-eager": "torch-eager", "torch-compile": "torch-compile"}
"""Maps names to runtimes of torch models; `torch` is a short name."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Describes a model on a runtime. `target` is a path, a text that names a torch model, or a torch module. `on` is
    the runtime with its options as text, `model` the model's name in the report."""

    target: Any
    on: str
    runtime: Runtime
    options: Options
    model: str = ""

    @property
    def is_torch(self) -> bool:
        """Whether the model is a torch model."""
        return self.on in TORCH.values()

    @property
    def label(self) -> str:
        """Returns the subject's name in the report."""
        return f"{self.model} on {self.on}"

    @property
    def file(self) -> Path | None:
        """Returns the model's file; None if the model has no file."""
        return self.target if isinstance(self.target, Path) else None

    def preparer(self, side: SideSource) -> Preparer:
        """Returns a preparer with a process of its own. For a module of this process, returns a preparer in this
        process."""
        if self.is_torch and isinstance(self.target, str | Path):
            return TorchPreparer(str(self.target), self.on, _weight(side))
        return self.runtime.preparer()

    def with_threads(self, threads: int) -> Subject | None:
        """Returns the subject with this number of threads; None if its runtime has no such option."""
        if not self.runtime.takes_threads:
            return None
        named = self.on.partition(":threads=")[0]
        return replace(self, on=f"{named}:threads={threads}", options=replace(self.options, threads=threads))


def _weight(side: SideSource) -> int:
    """Returns the bytes of a torch model's parameters, which raise the memory limit of its process."""
    module = side.torch_model.module if side.torch_model is not None else None
    return sum(one.nbytes for one in module.parameters()) if module is not None else 0


@dataclass(frozen=True)
class Failed:
    """Holds a subject that could not be measured, and the reason."""

    label: str
    problem: Problem

    @classmethod
    def of(cls, label: str, error: OnnxsmithError) -> Failed:
        """Makes a failure whose fix uses the options of `bench`, where `--subject` chooses a runtime and its
        provider."""
        fix = error.problem.fix.replace("--provider cpu", "--subject onnxruntime").replace("--runtime ", "--subject ")
        return cls(label, replace(error.problem, fix=fix))

    @property
    def reason(self) -> str:
        """Returns the problem in one line."""
        return f"{self.problem.id}: {self.problem.what}"


def subjects(models: Sequence[Any], names: Sequence[str]) -> tuple[list[Subject], list[Failed]]:
    """Returns every model on every named runtime that runs its kind of model; without names, on the default runtime. A
    model that names a runtime itself (`m.onnx@openvino`) gets only this runtime. Also returns the runtimes that cannot
    be used, with their problems.

    Raises:
        OnnxsmithError: `bench/no-subject` if a runtime was named that runs none of the models.
    """
    found: list[Subject] = []
    failed: list[Failed] = []
    used: set[str] = set()
    for model in models:
        target, own = _split(model)
        fits = [name for name in names if (name in TORCH) == _is_torch(target)]
        usual = "torch" if _is_torch(target) else runtimes.default()
        if own and (own in TORCH) != _is_torch(target):
            raise _unfit(own, [target])
        for name in [own] if own else fits or [usual]:
            used.add(name)
            _add(target, name, found, failed)
    unused = [name for name in names if name not in used]
    if unused:
        raise _unfit(unused[0], [_split(model)[0] for model in models])
    return _named(found), failed


def _named(found: Sequence[Subject]) -> list[Subject]:
    """Gives the subjects distinct names: files of the same name get their paths, and repeated subjects a number."""
    named: list[Subject] = []
    for one in found:
        clash = any(_name(other.target) == _name(one.target) and other.target != one.target for other in found)
        name = str(one.target) if clash and isinstance(one.target, Path) else _name(one.target)
        same = sum(1 for other in named if (other.target, other.on) == (one.target, one.on))
        named.append(replace(one, model=f"{name} ({same + 1})" if same else name))
    return named


def _name(target: Any) -> str:
    if isinstance(target, Path):
        return target.name
    return target if isinstance(target, str) else "the given module"


def _unfit(name: str, models: Sequence[Any]) -> OnnxsmithError:
    return problem(
        "bench/no-subject",
        f"{name} cannot run any of the given models",
        where=", ".join(map(_name, models)),
        why="torch and torch-compile run torch models; all other runtimes run ONNX files",
        fix=_torch_beside(name, models) if name in TORCH else _exported_first(name, models[0]),
    )


def _torch_beside(name: str, models: Sequence[Any]) -> str:
    files = pasted_words([str(one) if isinstance(one, Path) else "m.onnx" for one in models])
    return (
        f"in place of {name}, name a runtime that runs ONNX files, such as {runtimes.default()}; or give the torch "
        f"model beside the file: `onnxsmith bench {files} FILE.py:FACTORY --subject {name}`, with the function that "
        "makes it in the place of FILE.py:FACTORY"
    )


def _exported_first(name: str, model: Any) -> str:
    target = model if isinstance(model, str) else ""
    stem = Path(target.rpartition(":")[0] or target).stem
    first = (
        f"`onnxsmith export {pasted(target)} -o {pasted(f'{stem}.onnx')}`"
        if target
        else 'onnxsmith.export(module, args, output="model.onnx")'
    )
    return f"export the model, and give the file: {first}; or name torch in place of {name}"


def _add(target: Any, name: str, found: list[Subject], failed: list[Failed]) -> None:
    on = TORCH.get(name, name)
    try:
        runtime, options = runtimes.parse(on)
        made = Subject(target, on, runtime, replace(runtimes.patient(options), repeated=True))
    except OnnxsmithError as error:
        model = target if isinstance(target, str | Path) else "the given module"
        failed.append(Failed.of(f"{model} on {on}", error))
        return
    found.append(made)  # also a repeated model: it measures the noise


def _split(model: Any) -> tuple[Any, str]:
    """Returns the model, and the runtime that the model's text names; "" if it names no runtime."""
    if not isinstance(model, str | Path):
        return model, ""
    text = str(model)
    before, at, name = text.rpartition("@")
    if at and not Path(text).exists():
        return _target(before), name
    return _target(text), ""


def _target(text: str) -> Any:
    is_file = Path(text).suffix in (".onnx", ".pt2", *TEXT_SUFFIXES) or not factory.is_target(text)
    return Path(text) if is_file else text


def _is_torch(target: Any) -> bool:
    if isinstance(target, Path):
        return target.suffix == ".pt2"
    return isinstance(target, str) or not _is_onnx(target)


def _is_onnx(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in ("onnx", "onnx_ir")


# Runs a torch model in a process of its own, where its memory can be measured and a crash does no harm.


class TorchPreparer(Isolated):
    """Prepares one torch model, which a text names, with `weight` bytes of parameters. The caller has to give the
    interface of the module's program, with dynamic axes as texts."""

    def __init__(self, target: str, on: str, weight: int) -> None:
        super().__init__("onnxsmith.deployment.benching._torch_host", on)
        self._target, self._on, self._bytes = target, on, weight

    def prepare(
        self,
        source: Source,
        options: Options | None = None,
        *,
        interface: Signature | None = None,
        read: ir.Model | None = None,
    ) -> Session:
        assert interface is not None
        options = options or Options()
        request: dict[str, Any] = {"do": "prepare", "of": self.what, "path": self._target, "on": self._on}
        made = Turn(self, interface, {**request, "threads": options.threads}, options, self._bytes)
        made.begin()
        return made
