"""The message that onnx's checks read: the graph of the model, without large weights."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.light_message import light_message
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text, to_text


def model(version: int = 10) -> ir.Model:
    weights = ", ".join(["1"] * 2048)
    made = from_text(
        f'<ir_version: {version}, opset_import: ["": 20]> g (float[n,512] x) => (float[n,4] y) '
        f"<float[512,4] w = {{{weights}}}, int64[2] s = {{-1, 4}}> {{ a = MatMul(x, w) y = Reshape(a, s) }}"
    )
    made.graph.node(0).metadata_props["pkg.torch.onnx.stack_trace"] = "File a.py, line 1"
    made.graph.node(0).doc_string = "a product"
    return made


def test_large_weights_are_inputs_and_small_ones_stay() -> None:
    given = model()
    before = to_text(given)
    made = light_message(given)
    assert [one.name for one in made.graph.input] == ["x", "w"]
    assert [one.name for one in made.graph.initializer] == ["s"]
    assert not made.graph.node[0].metadata_props
    assert not made.graph.node[0].doc_string
    onnx.checker.check_model(made, full_check=True)
    assert to_text(given) == before


def test_external_data_is_read_into_it(tmp_path: Path) -> None:
    made = model()
    sizes = made.graph.initializers["s"]
    save(made, tmp_path / "m.onnx", external_data=True)
    read = load(tmp_path / "m.onnx")
    message = light_message(read)
    assert all(not one.external_data for one in message.graph.initializer)
    assert sizes.name in {one.name for one in message.graph.initializer}


@pytest.mark.parametrize("version", [3, 10])
def test_the_check_takes_initializers_that_are_no_inputs(version: int) -> None:
    assert check(model(version)) == ()


def test_a_light_message_is_checked_like_the_model() -> None:
    broken = model()
    broken.graph.node(1).attributes["allowzero"] = ir.AttrString("allowzero", "no")
    with pytest.raises(OnnxsmithError, match="allowzero"):
        check(broken, message=light_message(broken))
