"""A flatten of several dynamic axes is one node."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith
from tests.exports import assert_follows


@pytest.mark.usefixtures("compared_once")
def test_a_flatten_with_two_dynamic_axes_is_one_node() -> None:
    module = nn.Flatten(1)
    result = onnxsmith.export(module, (torch.rand(2, 3, 4, 5),), dynamic={"input": {0: "b", 2: "h"}})
    assert [node.op_type for node in result.model.graph] == ["Flatten"]
    assert_follows(result.model, module, *((torch.rand(b, 3, h, 5),) for b, h in ((1, 2), (0, 4), (3, 0), (0, 0))))
