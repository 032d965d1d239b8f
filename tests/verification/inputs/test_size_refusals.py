"""What runtimes say when they refuse an input leads to sizes and integers that they take."""

from __future__ import annotations

import itertools

import pytest

from onnxsmith.verification.inputs import size_refusals

BROADCAST = (
    "[ONNXRuntimeError] : 1 : FAIL : running Add node. /src/element_wise_ops.h:657 axis == 1 || axis == largest was "
    "false. Attempting to broadcast an axis by a dimension other than 1. 2 by 23"
)
RESHAPE = (
    "onnxruntime refused or failed [ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape "
    "node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:47 "
    "onnxruntime::ReshapeHelper The input tensor cannot be reshaped to the requested shape. Input shape:{2,64}, "
    "requested shape:{7,11,13}"
)
FIXED = "INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices index: 1 Got: 64 Expected: 32"
SIZES = [
    (RESHAPE, {"n": 2, "m": 64}, {"n": 1, "m": 1001}),
    (BROADCAST, {"n": 2}, {"n": 23}),
    (FIXED, {"h": 64}, {"h": 32}),
    ("The size of tensor a (64) must match the size of tensor b (4) at dimension 0", {"n": 64}, {"n": 4}),
    ("mat1 and mat2 shapes cannot be multiplied (2x64 and 32x8)", {"b": 2, "k": 64}, {"b": 2, "k": 32}),
    ("shape '[2, -1, 12]' is invalid for input of size 128", {"b": 2, "k": 64}, {"b": 2, "k": 192}),
    ("expected input[2, 64, 3] to have 5 channels", {"b": 2, "k": 64}, {"b": 2, "k": 5}),
    ("Argument shapes are inconsistent: [2,64] and [2,17]", {"b": 2, "k": 64}, {"b": 2, "k": 17}),
]


@pytest.mark.parametrize(("text", "now", "wanted"), SIZES)
def test_a_message_leads_to_sizes(text: str, now: dict[str, int], wanted: dict[str, int]) -> None:
    found = list(itertools.islice(size_refusals.sizes(text, now, {}), 12))
    assert wanted in found


def test_known_sizes_stay() -> None:
    found = size_refusals.sizes("Attempting to broadcast 2 by 23", {"n": 2, "m": 2}, {"n": 2})
    assert all(sizes["n"] == 2 for sizes in found)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("indices element out of data bounds, idx=7 must be within the inclusive range [-4,3]", 3),
        ("batch_indices value 1 at index 1 is out of range [0, 1)", 0),
        ("IndexError: index out of range in self", None),
        ("invalid index found, index = 3", None),
        ("Invalid value/s in sequence_lens. All values must be > 0 and < seq_length", None),
    ],
)
def test_a_refused_index_is_known(text: str, limit: int | None) -> None:
    assert size_refusals.is_of_index(text)
    assert size_refusals.index_limit(text) == limit


def test_other_refusals_are_of_no_index() -> None:
    assert not size_refusals.is_of_index("Attempting to broadcast an axis by a dimension other than 1. 2 by 23")
