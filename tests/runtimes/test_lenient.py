"""What the checker refuses and a runtime loads is a doubt; what neither takes is refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

from onnxsmith import compare, inspect, run, simplify
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.load import load
from onnxsmith.runtimes._lenient import checked, is_off
from tests.conftest import Refused

RELU = '<ir_version: 8, opset_import: ["": 17]>\ng (float[N,3] x) => (float[N,3] y) { m = Relu(x) y = Relu(m) }'


def without_shape(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].type.tensor_type.ClearField("shape")


def without_type(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].ClearField("type")


def with_alias(proto: onnx.ModelProto) -> None:
    for node in proto.graph.node:
        node.domain = "ai.onnx"


def of_an_old_file(proto: onnx.ModelProto) -> None:
    proto.ir_version, proto.opset_import[0].version = 3, 8
    proto.graph.node[1].op_type = "Add"
    proto.graph.node[1].input.append("w")
    proto.graph.initializer.add(name="w", data_type=1, dims=[3], float_data=[1, 2, 3])


def deprecated(proto: onnx.ModelProto) -> None:
    proto.CopyFrom(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,4,5] x) => (float[N,4,5] y) <float[2] s = {1, 2}, float[2] b = {0, 1}> {
            y = GroupNormalization <num_groups = 2> (x, s, b) }""")
    )


def with_training(proto: onnx.ModelProto) -> None:
    proto.training_info.add()


@pytest.mark.parametrize("odd", [without_shape, without_type, with_alias, of_an_old_file, deprecated, with_training])
def test_every_verb_takes_what_onnxruntime_loads(tmp_path: Path, odd: object) -> None:
    proto = parser.parse_model(RELU)
    odd(proto)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert inspect(path).verdict is Verdict.DONE
    assert run(path, random=True).ok
    assert compare(path, path, thorough=True).ok
    simple = simplify(path, tmp_path / "out.onnx")
    assert simple.ok
    assert compare(path, tmp_path / "out.onnx").ok
    if odd is with_training:
        assert simple.report.headline.endswith("left out: training information")
        assert any("training information" in note for note in inspect(path).notes)
    else:
        assert {problem.id for problem in simple.report.problems} == {"model/off-specification"}


def test_what_no_runtime_loads_is_refused(refused: Refused) -> None:
    proto = parser.parse_model(RELU)
    proto.graph.node[0].op_type = "Nonsense"
    with refused("model/invalid"):
        checked(load(proto), where="m.onnx")


def test_a_valid_model_is_not_off() -> None:
    assert not is_off(checked(load(parser.parse_model(RELU)), where="m.onnx"))
