"""prune --by first-order: what does not change the loss goes first, however large its weights are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.precision.pruning.torch_parameters import of_initializers, read
from tests.conftest import Refused
from tests.precision.pruning import model
from tests.precision.test_pruning import stored

PAGE = Path(onnxsmith.__file__).parent / "viewer" / "pages" / "prune" / "saliency.md"
HIDDEN, IDLE = 16, 8


@pytest.mark.torch
@pytest.mark.parametrize("axes", [2, 3])
def test_channels_without_an_effect_on_the_loss_go(tmp_path: Path, axes: int) -> None:
    """The last 8 channels have the largest weights, and reach outputs that the loss does not read. With three axes the
    exporter stores the weights of a Linear transposed, under other names."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 4))
    with torch.no_grad():
        network[2].weight[:2, IDLE:] = 0
        network[0].weight[IDLE:] *= 5
    draw = torch.randn(5, 3, *([7] if axes == 3 else []), 6)
    batches = [(x, torch.zeros(*x.shape[:-1], 2)) for x in draw]
    names: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(code, names)
    file = tmp_path / "saliency.npz"
    names["save_saliency"](network, batches, lambda y, wanted: (y[..., :2] - wanted).square().mean(), file)

    path, kept = tmp_path / "net.onnx", tmp_path / "kept.json"
    onnxsmith.export(network.eval(), (draw[0],), output=path, simplify=False)
    stayed = {}
    for by, options in (("norm", {}), ("first-order", {"saliency": file})):
        result = onnxsmith.prune(
            path, tmp_path / "small.onnx", share=0.5, by=by, multiple=1, keep_list=kept, measure_time=False, **options
        )
        assert result.report.verdict is Verdict.DONE, result.report.problems
        stayed[by] = set(json.loads(kept.read_text(encoding="utf-8"))["0.weight"]["0"])
    assert stayed["first-order"] == set(range(IDLE))
    assert stayed["norm"] != stayed["first-order"]


def test_shapes_follow_the_parameter() -> None:
    made = model("g (float[n,4] x, float[4,3] w) => (float[n,3] y) { y = MatMul(x, w) }")
    found = of_initializers(made, read({"w": np.arange(12).reshape(4, 3), "other": np.ones(2)}, "first-order"))
    assert list(found) == ["w"]
    np.testing.assert_array_equal(found["w"], np.arange(12).reshape(4, 3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "first-order"}, "needs a saliency"),
        ({"saliency": {"w1": np.ones(3)}}, "reads no saliency"),
        ({"by": "first-order", "saliency": {"w1": np.ones(3)}}, "another shape"),
        ({"by": "first-order", "saliency": {"w1": -np.ones(3)}}, "0 or more"),
        ({"by": "first-order", "saliency": {"w1": np.full(3, np.nan)}}, "0 or more"),
        ({"by": "first-order", "saliency": {"unknown": np.ones(3)}}, "no saliency is given"),
        ({"by": "first-order", "saliency": "nowhere.npz"}, "cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, refused: Refused, options: dict[str, Any], said: str) -> None:
    path = stored(tmp_path)
    with refused("prune/saliency") as refusal:
        onnxsmith.prune(path, tmp_path / "small.onnx", share=0.5, **options)
    assert said in refusal.problem.what
    assert not (tmp_path / "small.onnx").exists()


def test_a_text_is_no_saliency(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "saliency.npz").write_text("no zip", encoding="utf-8")
    with refused("prune/saliency") as refusal:
        read(tmp_path / "saliency.npz", "first-order")
    assert "cannot be read" in refusal.problem.what
