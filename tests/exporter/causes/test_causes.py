"""Messages as torch, onnx and onnxruntime write them, and what they mean."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.base.report.parts.explanations import Page
from onnxsmith.exporter.causes.base import recognise

GUARD = "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: none)"
MESSAGES = {
    GUARD: "forward/branch-on-data",
    f'{GUARD}\n  File "net.py", line 7, in forward\n    while x.sum() > 1:': "forward/loop-on-data",
    f'{GUARD}\n  File "net.py", line 7, in forward\n    n = x.max().item()': "forward/python-value",
    "Failed to export the model with torch.export.\n- Debug the error and submit a PR to PyTorch.\n"
    "No ONNX function found for <OpOverload(op='aten.linalg_eig', overload='default')>": "export/no-translation",
    "If there is an internal error, debug the error and submit a PR to PyTorch.": "export/translation-failed",
    "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor).": "export/capture-failed",
    "TypeError: missing a required argument: 'options'": "export/missing-argument",
    "lifted_tensor_4": "export/object-input",
    "We found a fake tensor in the exported program constant's list […]: lifted_tensor_0": "forward/data-attribute",
    "LinearPackedParamsBase does not have a field with name '__obj_flatten__'": "export/quantized-module",
    "adapt: Assertion `false` failed: No Previous Version of LayerNormalization exists": "export/opset",
    "NOT_IMPLEMENTED : Could not find an implementation for Gemm(13) node with name 'n'": "runtime/no-kernel",
    "Type 'tensor(bfloat16)' of input parameter (x) of operator (Conv) in node (n) is invalid.": "runtime/no-kernel",
    "Could not import module 'BertForSequenceClassification'. Are this object's requirements": "export/broken-import",
    "AssertionError: Torch not compiled with CUDA enabled": "forward/device",
    "RuntimeError: .numpy() is not supported for tensor subclasses.": "forward/numpy",
    "Constraints violated (batch)! batch = L['x'].size()[0] was inferred to be a constant (3)": "export/frozen-axis",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_recognised(message: str) -> None:
    found = recognise(message)
    assert found is not None
    assert found.id == MESSAGES[message]
    assert found.what
    assert found.why
    assert found.fix


def test_an_operator_that_cannot_be_had_says_why() -> None:
    found = recognise("No ONNX function found for <OpOverload(op='aten.linalg_eig', overload='default')>")
    assert found is not None
    assert "torch.linalg.eigh" in found.why


@pytest.mark.parametrize("message", MESSAGES)
def test_explain_takes_the_message(message: str) -> None:
    report = onnxsmith.explain(message)
    assert report.problems[0].id == MESSAGES[message]
    assert report.part(Page).text.startswith(f"# {MESSAGES[message]}:")


@pytest.mark.parametrize("message", ["", "hello", "a tensor has the wrong shape", "no such file", "export/opsets"])
def test_what_is_none_of_them_is_not_recognised(message: str) -> None:
    assert recognise(message) is None


def test_the_line_is_read_from_the_message_and_given_by_who_knows_better() -> None:
    frames = ('File "/a/net.py", line 7, in forward', 'File "/b/site-packages/torch/x.py", line 1, in y')
    text = "\n".join((GUARD, *frames))
    found = recognise(text)
    assert found is not None
    assert found.where == "/a/net.py:7"
    found = recognise(text, "/c/other.py:3")
    assert found is not None
    assert found.where == "/c/other.py:3"
