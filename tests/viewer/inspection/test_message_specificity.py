"""A cause matches its own messages only: those of other causes, and messages that say little, are not its."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.viewer.inspection import cause_matching
from onnxsmith.viewer.inspection.cause_matching import Example, Message, known

EXAMPLES = [(message, example) for message in known().values() for example in message.examples]
GENERIC = (
    "Slice failed",
    "error in Slice layer",
    "RuntimeError: sizes or scales must be provided",
    "ValueError: Expected one of sizes or scales",
    "Resize failed",
    "RuntimeError: shape mismatch",
    "ValueError: operands could not be broadcast together with shapes (3,) (4,)",
    "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    "IndexError: index 5 is out of bounds for axis 0 with size 3",
    "out of memory",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    "FileNotFoundError: [Errno 2] No such file or directory: 'model.onnx'",
    "ModuleNotFoundError: No module named 'tensorflow'",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "AttributeError: module 'torch' has no attribute 'compile'",
    "TypeError: export() got an unexpected keyword argument 'path'",
    "ValueError: axes don't match array",
    "AssertionError",
    "ERROR: Failed building wheel for numpy",
    "ERROR: Could not find a version that satisfies the requirement tensorflow==1.15 (from versions: 2.12.0)",
    "this feature is not supported yet!",
    "Segmentation fault (core dumped)",
    "Killed",
    "error: LinkError in module",
    "the model type is unsupported",
    "Version mismatch",
    "CMake Error: could not find package",
    "Aborted()",
    "no data is collected",
    "warning: pthread_create failed",
    "expected x to be an initializer list",
    "Error opening config.json",
    "ValueError: zero-size array to reduction operation maximum which has no identity",
    "ImportError: cannot import name 'helper' from 'utils' (/home/me/utils.py)",
    "ModuleNotFoundError: No module named 'torch.onnx.mine'",
    "AttributeError: 'function' object has no attribute 'shape'",
    "RuntimeError: scale must be positive",
    "ValueError: axis 3 is out of bounds for array of dimension 2",
)
"""Messages without the words that name a cause, some of other programs."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0].id}: {example[1].link}")
def test_only_general_causes_match_the_message_of_another(example: tuple[Message, Example]) -> None:
    message, shown = example
    found = cause_matching.match(shown.text)
    others = [one.message.id for one in found if one.message.id != message.id and not one.message.general]
    assert found[0].message.id == message.id
    assert not others


@pytest.mark.parametrize("text", GENERIC)
def test_a_message_that_names_no_cause_is_unknown(text: str) -> None:
    assert not [one.message.id for one in cause_matching.match(text)]
    with pytest.raises(OnnxsmithError):
        onnxsmith.explain(text)


def test_a_general_cause_alone_says_that_it_is_only_the_place() -> None:
    report = onnxsmith.explain("Non-zero status code returned while running Sqrt node. Name:'s' Status Message: no")
    assert any("where the tool stopped" in note for note in report.notes)
    report = onnxsmith.explain("No importer registered for op: Mish")
    assert not report.notes


@pytest.mark.parametrize(
    "decorated",
    [
        "2024-05-01T10:00:00.123Z {}",
        "[2024-05-01 10:00:00,123] {}",
        "web-1  | {}",
        "#12 34.56 {}",
        "> > {}",
        "│ {} │",
        "\x1b[1;31m{}\x1b[0m\x1b[K",
        "[31m{}[0m",
        "first line\n{}\nthen a hundred more\nlast line",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "AttributeError: module \u2018onnxruntime\u2019 has no attribute \u2018InferenceSession\u2019",
        "Specified provider 'CUDAExecutionProvider' is not in available provider names",
        "Specified provider &#39;CUDAExecutionProvider&#39; is not in available provider names",
        "NO_SUCHFILE : Load model from C:\\My Models\\a b.onnx failed:Load model C:\\My Models\\a b.onnx failed.",
        "Could not find any implementation for node {ForeignNode[a + (Unnamed Layer* 3) [Shuffle].../b/Reshape_3]}.)",
    ],
)
def test_decorations_do_not_hide_a_message(decorated: str, text: str) -> None:
    assert cause_matching.match(decorated.format(text))


def test_names_inside_brackets_are_read() -> None:
    text = "Could not find any implementation for node {ForeignNode[a + (Unnamed Layer* 3) [Shuffle].../b/Reshape_3]}.)"
    (found,) = cause_matching.match(text)
    assert found.names["node"] == "a + (Unnamed Layer* 3) [Shuffle].../b/Reshape_3"


@pytest.mark.parametrize(
    "text",
    [
        "AttributeError: module 'onnx.helper' has no attribute 'make_sequence_value_info'",
        "ImportError: cannot import name 'make_sequence_value_info' from 'onnx.helper' (/usr/onnx/helper.py)",
        "onnx.helper has no attribute make_sequence_value_info",
        "'onnx.helper' has no attribute 'make_sequence_value_info'",
    ],
)
def test_a_missing_name_is_known_in_every_wording(text: str) -> None:
    (found,) = cause_matching.match(text)
    assert (found.message.id, found.names) == ("onnx/helper-removed", {"function": "make_sequence_value_info"})
