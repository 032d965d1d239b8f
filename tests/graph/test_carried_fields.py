"""Parts of the format that the graph library does not hold: kept, or left out and said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import to_text
from onnxsmith.graph.structure import carried_fields
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]>\n'
DENSE = np.array([[0, 2, 0], [0, 0, 5]], np.float32)


def adding() -> onnx.ModelProto:
    return parser.parse_model(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")


def sparse(name: str = "w", *, flat: bool = True, dense: np.ndarray = DENSE) -> onnx.SparseTensorProto:
    at = np.argwhere(dense)
    where = np.ravel_multi_index(tuple(at.T), dense.shape) if flat else at
    values = numpy_helper.from_array(dense[tuple(at.T)], name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.asarray(where, np.int64)), list(dense.shape))


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int64, np.int8])
def test_a_sparse_initializer_reads_as_a_dense_one(flat: bool, dtype: type) -> None:
    proto = adding()
    proto.graph.sparse_initializer.append(sparse(flat=flat, dense=DENSE.astype(dtype)))
    value = load(proto).graph.initializers["w"]
    assert value.const_value is not None
    assert value.dtype == ir.DataType.from_numpy(np.dtype(dtype))
    assert value.const_value.numpy().tolist() == DENSE.tolist()


def test_a_sparse_initializer_is_written_as_it_was(tmp_path: Path) -> None:
    proto = adding()
    proto.graph.sparse_initializer.append(sparse())
    model = cloned(load(proto))
    model.graph.initializers["w"].name = "renamed"
    for external in (False, True):
        save(model, tmp_path / "m.onnx", external_data=external)
        written = onnx.load(tmp_path / "m.onnx")
        (kept,) = written.graph.sparse_initializer
        assert not written.graph.initializer
        assert kept.values.name == written.graph.node[0].input[1] == "renamed"
        assert kept.indices == proto.graph.sparse_initializer[0].indices
        onnx.checker.check_model(written)
    assert proto.graph.sparse_initializer[0].values.name == "w"
    assert "Add" in to_text(model)


def test_a_sparse_constant_is_written_as_it_was(tmp_path: Path) -> None:
    proto = adding()
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse()))
    model = load(proto)
    assert model.graph.node(0).attributes["value"].as_tensor().numpy().tolist() == DENSE.tolist()
    save(model, tmp_path / "m.onnx")
    (attribute,) = onnx.load(tmp_path / "m.onnx").graph.node[0].attribute
    assert (attribute.name, attribute.sparse_tensor.dims) == ("sparse_value", [2, 3])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda s: s.indices.CopyFrom(numpy_helper.from_array(np.array([1, 6]))), "outside"),
        (lambda s: s.indices.CopyFrom(numpy_helper.from_array(np.array([-1, 5]))), "outside"),
        (lambda s: s.indices.CopyFrom(numpy_helper.from_array(np.array([1]))), "2 values need indices"),
        (lambda s: s.indices.CopyFrom(numpy_helper.from_array(np.array([1, 5], np.int32))), "int64"),
        (lambda s: s.dims.__setitem__(0, -2), "shape"),
        (lambda s: s.ClearField("dims"), "shape"),
        (lambda s: s.dims.__setitem__(0, 2**40), "bytes"),
        (lambda s: s.values.dims.append(1), "list"),
    ],
)
def test_a_sparse_tensor_that_does_not_add_up_is_refused(spoil: object, said: str, refused: Refused) -> None:
    proto = adding()
    proto.graph.sparse_initializer.append(sparse())
    spoil(proto.graph.sparse_initializer[0])
    with refused("model/invalid") as refusal:
        load(proto)
    assert said in refusal.problem.why


def test_a_huge_sparse_tensor_is_read_without_making_it() -> None:
    import tracemalloc

    proto = adding()
    message = sparse()
    message.dims[:] = [20_000, 20_000]
    proto.graph.sparse_initializer.append(message)
    tracemalloc.start()
    model = load(proto)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert model.graph.initializers["w"].shape == ir.Shape([20_000, 20_000])


def with_map(proto: onnx.ModelProto) -> None:
    of = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    proto.graph.node.append(helper.make_node("ZipMap", ["y"], ["m"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3]))
    proto.graph.output.append(helper.make_value_info("m", helper.make_sequence_type_proto(of)))


def test_an_output_of_maps_is_written_as_it_was(tmp_path: Path) -> None:
    proto = adding()
    proto.graph.initializer.append(numpy_helper.from_array(DENSE, "w"))
    with_map(proto)
    wanted = proto.graph.output[1].SerializeToString()
    model = cloned(load(proto))
    assert [port.kind for port in signature(model).outputs] == ["tensor", "map"]
    save(model, tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.output[1].SerializeToString() == wanted


def test_an_opaque_type_is_written_as_it_was(tmp_path: Path) -> None:
    proto = parser.parse_model(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    proto.graph.output[0].type.opaque_type.name = "thing"
    save(load(proto), tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.output[0].type.opaque_type.name == "thing"


def test_training_information_is_left_out_and_that_is_known() -> None:
    proto = parser.parse_model(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    proto.training_info.add()
    given = proto.SerializeToString()
    model = load(proto)
    assert carried_fields.left_out(model) == carried_fields.left_out(cloned(model)) == ("training information",)
    assert proto.SerializeToString() == given


@pytest.mark.parametrize("named", [True, False])
def test_device_configurations_without_a_name_are_left_out(named: bool) -> None:
    proto = parser.parse_model(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    proto.graph.node[0].device_configurations.add(configuration_id="two" if named else "", pipeline_stage=1)
    assert carried_fields.left_out(load(proto)) == (() if named else ("a device configuration without a name",))


def test_a_shape_without_a_type_is_left_out_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """onnx-ir logs one for each such value, and Python prints it on standard error."""
    head = '<ir_version: 10, opset_import: ["": 21]> '
    model = ir.from_onnx_text(head + "g (float[1] x) => (float[1] y) <float[1] b = {1}> { a = Add(x, b) y = Relu(a) }")
    for value in (model.graph.initializers["b"], model.graph.node(0).outputs[0]):
        value.type, value.shape = None, ir.Shape([1])
    assert [info.name for info in carried_fields.to_proto(model).graph.value_info] == []
    assert model.graph.initializers["b"].shape == [1]
    assert caplog.messages == []
