"""What every runtime promises about torch: its tensors are no feeds, and the eager runtime has one provider."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnxsmith.base import rooms
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Options, Runtime, get
from onnxsmith.runtimes.torch_eager import TorchProgram
from tests.conftest import Refused

ALL = rooms.members("onnxsmith.runtimes", Runtime)
ELSEWHERE = ("iree", "web")
"""Those that the extra `dev` does not install."""
ONNX = [n for n in ALL if not n.startswith("torch-") and (n not in ELSEWHERE or ALL[n].missing() is None)]
SOURCE = '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x, float[n] z) => (float[n,3] y) { y = Abs(x) }'


@pytest.mark.parametrize("name", ONNX)
def test_a_tensor_is_told_how_to_become_an_array(name: str, refused: Refused) -> None:
    with get(name).prepare(from_text(SOURCE)) as session, refused("run/not-an-array") as refusal:
        session.run({"x": torch.zeros(2, 3), "z": np.zeros(2, np.float32)})  # type: ignore[dict-item]
    assert refusal.problem.fix == "pass tensor.detach().cpu().numpy()"


@pytest.mark.parametrize("name", [name for name in ONNX if name not in {"iree", "openvino", "tract", "web"}])
def test_a_tensor_in_a_sequence_is_refused(name: str, refused: Refused) -> None:
    source = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (seq(float[n]) s) => (int64 y) { y = SequenceLength(s) }'
    )
    with get(name).prepare(source) as session, refused("run/not-an-array"):
        session.run({"s": [torch.zeros(2)]})  # type: ignore[list-item]


def test_a_provider_that_torch_has_not_is_refused(refused: Refused) -> None:
    program = TorchProgram(torch.nn.Identity(), Signature((), ()), [], [], lambda leaves: (leaves, {}))
    with refused("runtime/provider-missing"):
        get("torch-eager").prepare(program, Options(provider="cuda"))
