"""Elements that are equal up to rounding have no order: an operator that orders them may answer in many ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnx import parser
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.surgery.tie_noise import SEED, SWITCH, WHOLE, with_tie_noise
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 8, opset_import: ["": 17]> '


def parsed(text: str) -> ir.Model:
    return ir.from_proto(parser.parse_model(HEAD + text))


class Best(nn.Module):
    """The best places of a score map, which is nearly constant for an image of one pixel."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__()
        self.stem, self.score = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 1, 1)
        self.wrong = wrong

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = nn.functional.interpolate(image, size=(24, 24), mode="nearest")
        score = self.score(torch.sigmoid(self.stem(image))).flatten(1)
        place = torch.arange(24 * 24, dtype=torch.float32).expand(score.shape[0], -1)
        return torch.gather(place, 1, score.topk(20, dim=1).indices)


def test_an_order_that_rounding_decides_is_left_out_and_named(tmp_path: Path) -> None:
    torch.manual_seed(0)
    axes = {"image": {0: "batch", 2: "height", 3: "width"}}
    result = onnxsmith.export(Best(), (torch.rand(2, 3, 40, 56),), output=tmp_path / "m.onnx", dynamic=axes)
    part = result.report.part(Verification)
    assert part.equal
    assert any("was left out on" in note and "could not decide about it" in note for note in part.notes), part.notes


TOP = "g (float[n,40] x) => (int64[n,5] i) <int64[1] k = {5}> { v, i = TopK<largest = LARGEST>(x, k) }"


def test_another_order_is_still_a_difference() -> None:
    right, wrong = parsed(TOP.replace("LARGEST", "1")), parsed(TOP.replace("LARGEST", "0"))
    assert verify_models(right, wrong).differs
    assert verify_models(right, right).equal


FIRST = "g (float[n,6] x) => (int64[n,1] i) { r = Round(x) i = ArgMax<axis = 1, select_last_index = LAST>(r) }"


def test_equal_whole_numbers_of_two_graphs_have_an_order() -> None:
    """The standard says which of equal elements is the first; both sides are graphs, so nothing is rounded here."""
    assert verify_models(parsed(FIRST.replace("LAST", "0")), parsed(FIRST.replace("LAST", "1"))).differs


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("operator", ["TopK", "ArgMin"])
def test_only_the_switch_changes_a_model(dtype: str, operator: str) -> None:
    text = {
        "TopK": f"g ({dtype}[2,9] x) => ({dtype}[2,3] v, int64[2,3] i) <int64[1] k = {{3}}> {{ v, i = TopK(x, k) }}",
        "ArgMin": f"g ({dtype}[2,9] x) => (int64[2,1] i) {{ i = ArgMin<axis = 1>(x) }}",
    }[operator]
    model = parsed(text)
    numpy = {"float": np.float32, "double": np.float64, "float16": np.float16}[dtype]
    values = np.full((2, 9), 0.1, numpy)
    values[1, 4], values[0, 2] = np.inf, np.nan
    assert with_tie_noise(model)
    with (
        runtimes.get("onnxruntime").prepare(model) as session,
        runtimes.get("onnxruntime").prepare(parsed(text)) as old,
    ):
        for one, other in zip(old.run({"x": values}).values(), session.run({"x": values}).values(), strict=True):
            np.testing.assert_array_equal(one, other)
        values = np.full((2, 9), 0.1, numpy)
        on = np.array(1, np.float32)
        feeds = ({"x": values, SWITCH: on, SEED: np.array(seed, np.float32)} for seed in range(6))
        orders = {tuple(session.run(feed)["i"].ravel()) for feed in feeds}
    assert len(orders) > 1


def test_zeros_are_ordered_only_as_a_whole() -> None:
    model = parsed("g (float[9] x) => (int64[1] i) { i = ArgMax<axis = 0>(x) }")
    assert with_tie_noise(model)
    on = np.array(1, np.float32)
    with runtimes.get("onnxruntime").prepare(model) as session:

        def found(whole: int) -> set[int]:
            seeds = (np.array(seed, np.float32) for seed in range(6))
            feeds = ({"x": np.zeros(9, np.float32), SWITCH: on, SEED: s, WHOLE: np.array(whole, "f")} for s in seeds)
            return {int(session.run(feed)["i"][0]) for feed in feeds}

        assert found(0) == {0}
        assert len(found(1)) > 1


@pytest.mark.parametrize(
    "text",
    ["g (float[4] x) => (float[4] y) { y = Relu(x) }", "g (int64[4] x) => (int64[1] y) { y = ArgMax<axis=0>(x) }"],
)
def test_a_model_without_an_order_of_floats_is_left_alone(text: str) -> None:
    model = parsed(text)
    assert not with_tie_noise(model)
    assert len(model.graph.inputs) == 1
