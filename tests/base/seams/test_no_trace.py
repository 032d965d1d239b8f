"""After any verb, in any order, from many threads, torch and the ONNX libraries are as they were."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import onnxsmith

LIBRARIES = ("torch", "transformers", "onnx_ir", "onnx_shape_inference", "onnxscript", "onnx")


class Layers(torch.nn.Module):
    """Attention, a recurrent layer, a mask and a length: most of what a rewrite or a seam is for."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.recurrent = torch.nn.LSTM(8, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.recurrent(self.encoder(x) * 0.1)[0][:, : len(x)]


LAYERS = Layers().eval()


class Branch(torch.nn.Module):
    """A branch on data, which stops a trace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


def state() -> dict[tuple[str, str], Any]:
    """What the libraries' modules and classes hold that can be called, and the flags that are switched."""
    found: dict[tuple[str, str], Any] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in LIBRARIES or module is None:
            continue
        for attribute, value in list(vars(module).items()):
            if callable(value):
                found[name, attribute] = value
            if issubclass(type(value), type) and value.__module__ == name:
                members = {f"{attribute}.{one}": held for one, held in list(vars(value).items()) if callable(held)}
                found.update({(name, one): held for one, held in members.items()})
    found["torch", "mha"] = torch.backends.mha.get_fastpath_enabled()
    found["torch", "compiling"] = torch.compiler.is_compiling()
    found["torch", "exporting"] = torch.compiler.is_exporting()
    return found


def changed(before: dict[tuple[str, str], Any]) -> list[str]:
    after = state()
    other = [key for key, value in before.items() if after.get(key) is not value]
    ours = [key for key, value in after.items() if str(getattr(value, "__module__", "")).startswith("onnxsmith")]
    return [".".join(key) for key in (*other, *ours)]


def exported(folder: Path, number: int, module: torch.nn.Module | None = None, *, verify: bool = False) -> bytes:
    output = folder / f"{number}.onnx"
    onnxsmith.export(
        module or copy.deepcopy(LAYERS),
        (torch.zeros(2, 3, 8),),
        output=output,
        dynamic={"x": {0: "batch"}},
        verify=verify,
    )
    return output.read_bytes()


def simplified(folder: Path) -> None:
    onnxsmith.simplify(folder / "0.onnx", folder / "simple.onnx", verify=False)


def diagnosed(_: Path) -> None:
    onnxsmith.diagnose(Branch(), (torch.ones(3),))


def refused(_: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError):
        onnxsmith.export(Branch(), (torch.ones(3),), strategy="torch_export")


def compared(folder: Path) -> None:
    given = torch.rand(2, 3, 8)
    onnxsmith.compare(
        (LAYERS, (given,)), folder / "0.onnx", inputs={"x": given.numpy()}, per_layer=True, generate=False
    )


VERBS: list[Callable[[Path], object]] = [simplified, diagnosed, refused, compared, lambda folder: exported(folder, 0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a model in it, once every verb has imported what it uses."""
    made = tmp_path_factory.mktemp("no-trace")
    exported(made, 0)
    for verb in VERBS:
        verb(made)
    return made


@pytest.mark.parametrize("order", [VERBS, VERBS[::-1]], ids=["forwards", "backwards"])
def test_nothing_is_changed_by_one_verb_after_the_other(folder: Path, order: list[Callable[[Path], object]]) -> None:
    before = state()
    for verb in order:
        verb(folder)
        assert changed(before) == [], verb


@pytest.mark.parametrize("module", [None, LAYERS], ids=["copies", "one-module"])
def test_eight_exports_in_four_threads_are_those_of_one_after_the_other(
    folder: Path, module: torch.nn.Module | None
) -> None:
    verify = module is not None  # the runs correct the declared shape of the output
    alone, before = exported(folder, 0, verify=verify), state()
    found: dict[int, bytes] = {}

    def work(first: int) -> None:
        for number in (first, first + 1):
            found[number] = exported(folder, number, module, verify=verify)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 9, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(found) == 8
    assert set(found.values()) == {alone}
    assert changed(before) == []
