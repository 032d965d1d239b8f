"""What was loaded is written again as it was: values, names, descriptions, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper, parser

from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save, staged
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

HEAD = '<ir_version: 11, opset_import: ["": 23, "l": 1]>\n'

NUMBERS = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "INT2": ml_dtypes.int2,
    "UINT2": ml_dtypes.uint2,
    "INT4": ml_dtypes.int4,
    "UINT4": ml_dtypes.uint4,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
}
SHAPES = [(), (0,), (2, 0, 3), (1,), (7,), (40, 50)]


def holding(*tensors: ir.TensorProtocol) -> ir.Model:
    model = from_text(HEAD + "g (float x) => (float y) { y = Abs(x) }")
    for tensor in tensors:
        model.graph.register_initializer(ir.Value(name=tensor.name, const_value=tensor))
    return model


def weight(path: Path, name: str = "w") -> ir.TensorProtocol:
    tensor = load(path).graph.initializers[name].const_value
    assert tensor is not None
    return tensor


# Values


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_come_back_to_the_bit(tmp_path: Path, dtype: str, shape: tuple[int, ...], external: bool) -> None:
    size = int(np.prod(shape)) * np.dtype(NUMBERS[dtype]).itemsize
    bits = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    if ir.DataType[dtype].bitwidth < 8 or dtype == "BOOL":
        bits %= 2
    array = bits.view(NUMBERS[dtype]).reshape(shape)
    save(holding(ir.Tensor(array, name="w")), tmp_path / "m.onnx", external_data=external)
    found = weight(tmp_path / "m.onnx")
    assert found.dtype == ir.DataType[dtype]
    assert (found.shape, found.numpy().tobytes()) == (array.shape, array.tobytes())


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("texts", [[], [b""], [b"a", "Straße".encode(), b"\xff\0"], [b"x" * 5000]], ids=len)
def test_strings_come_back(tmp_path: Path, texts: list[bytes], external: bool) -> None:
    tensor = ir.StringTensor(texts, shape=ir.Shape([len(texts)]), name="w")
    save(holding(tensor), tmp_path / "m.onnx", external_data=external)
    found = weight(tmp_path / "m.onnx")
    assert isinstance(found, ir.StringTensor)
    assert list(found.string_data()) == texts


def test_values_in_typed_fields_come_back(tmp_path: Path) -> None:
    proto = ir.to_proto(holding())
    proto.graph.initializer.add(name="h", data_type=onnx.TensorProto.FLOAT16, dims=[2], int32_data=[15360, 49152])
    proto.graph.initializer.add(name="q", data_type=onnx.TensorProto.INT4, dims=[3], int32_data=[0x1F, 0x02])
    proto.graph.initializer.add(name="c", data_type=onnx.TensorProto.COMPLEX64, dims=[1], float_data=[1, -2])
    proto.graph.initializer.add(name="u", data_type=onnx.TensorProto.UINT32, dims=[1], uint64_data=[2**32 - 1])
    save(load(proto), tmp_path / "m.onnx")
    found = load(tmp_path / "m.onnx").graph.initializers.values()
    assert [v.const_value.numpy().tolist() for v in found if v.const_value is not None] == [
        [1.0, -2.0],
        [-1, 1, 2],
        [1 - 2j],
        [2**32 - 1],
    ]


# Everything else

FULL = (
    HEAD
    + """
g (float[n, 3] x, bool c, seq(float[n]) s, optional(int64) o, float r) => (float[n, 3] y, float[?, m] z)
<float[3] w = {1, 2, 3}, float scale = {0.5}, uint8 zero = {0}, float[n, 3] t> {
    [first] t = Mul(x, w)
    u = l.twice:over <k = 2> (t)
    e, = Dropout(u)
    y = If (c) <
        then_branch = inner (float v, float i) => (float[n, 3] p) <float[3] b = {4, 5, 6}> { p = Add(t, b) },
        else_branch = other () => (float[n, 3] q) { q = Neg(t) }
    >
    z = l.odd <i = 1, f = 1.5, st = "text", ints = [1, 2], fs = [1.0], sts = ["a", "b"], t = float[2] {1, 2},
               tp = float[n, 2]> (x, "", y)
}
<domain: "l", overload: "over", opset_import: ["": 23]> twice <k, a: int = 1> (v) => (h)
<float[n] h> { d = Constant<value_int: int = @a>()\n g = Cast<to = 1>(d)\n h = Mul(v, g) }
"""
)


def full() -> onnx.ModelProto:
    proto = parser.parse_model(FULL.replace("\\n", "\n"))
    proto.producer_name, proto.producer_version, proto.domain = "a test", "1.2", "tests"
    proto.model_version, proto.doc_string = 7, "the model"
    helper.set_model_props(proto, {"a": "1", "b": "2"})
    graph, function, branch = proto.graph, proto.functions[0], proto.graph.node[3].attribute[0].g
    holders = [graph, function, branch, graph.node[0], function.node[0], branch.node[0]]
    holders += [graph.input[0], graph.output[0], graph.value_info[0], graph.initializer[0]]
    for number, holder in enumerate(holders):
        holder.doc_string = f"doc {number}"
        helper.set_model_props(holder, {"key": f"value {number}"})
    graph.node[0].attribute.add(name="noted", type=onnx.AttributeProto.INT, doc_string="an attribute", i=3)
    raw = graph.node[4].attribute.add(name="raw", type=onnx.AttributeProto.STRING)
    raw.s = b"\xff\xfe"
    many = graph.node[4].attribute.add(name="tensors", type=onnx.AttributeProto.TENSORS)
    many.tensors.append(numpy_helper.from_array(np.arange(3), "inner"))
    graphs = graph.node[4].attribute.add(name="graphs", type=onnx.AttributeProto.GRAPHS)
    graphs.graphs.append(parser.parse_graph("deep (float deepest) => (float k) { k = Abs(deepest) }"))
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    proto.configuration.add(name="two", num_devices=2, device=["a", "b"])
    sharding = graph.node[0].device_configurations.add(configuration_id="two", pipeline_stage=1).sharding_spec.add()
    sharding.tensor_name = "x"
    sharding.device.extend([0, 1])
    sharding.sharded_dim.add(axis=0).simple_sharding.add(num_shards=2)
    for name in ("t", "x", "w", "y"):
        annotation = graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
        annotation.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="zero")
    return proto


def comparable(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Without what means nothing: the order of entries found by name, empty text, types of initializers repeated."""
    plain = onnx.ModelProto()
    plain.CopyFrom(proto)
    attributes = [attribute for node in plain.graph.node for attribute in node.attribute]
    graphs = [plain.graph, *(a.g for a in attributes if a.HasField("g")), *(g for a in attributes for g in a.graphs)]
    for graph in graphs:
        weights = {tensor.name for tensor in graph.initializer}
        for field, key in ((graph.value_info, "name"), (graph.quantization_annotation, "tensor_name")):
            kept = [entry for entry in field if key != "name" or entry.name not in weights]
            kept.sort(key=attrgetter(key))
            del field[:]
            field.extend(kept)
    for node in [*(n for g in graphs for n in g.node), *(n for f in plain.functions for n in f.node)]:
        while node.output and not node.output[-1]:
            node.output.pop()
        for field_name in ("name", "domain", "overload"):
            if not getattr(node, field_name):
                node.ClearField(field_name)
    return plain


@pytest.mark.parametrize("external", [False, True])
def test_everything_else_survives_as_it_was(tmp_path: Path, external: bool) -> None:
    proto = full()
    (tmp_path / "in.onnx").write_bytes(proto.SerializeToString())
    save(load(tmp_path / "in.onnx"), tmp_path / "out.onnx", external_data=external)
    found = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert str(comparable(found)) == str(comparable(proto))


def test_a_clone_is_written_like_its_model() -> None:
    model = load(full())
    assert ir.to_proto(model.clone()).SerializeToString() == ir.to_proto(model).SerializeToString()


@pytest.mark.parametrize("external", [False, True])
def test_saving_twice_gives_the_same_bytes(tmp_path: Path, external: bool) -> None:
    model = holding(ir.Tensor(np.arange(5000, dtype=np.float32), name="w"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(model, tmp_path / folder / "m.onnx", external_data=external)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_what_was_saved_once_is_saved_again_the_same(tmp_path: Path) -> None:
    save(load(full()), tmp_path / "a.onnx")
    save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_values_shared_by_two_names_stay_under_both(tmp_path: Path) -> None:
    model = holding(ir.Tensor(np.arange(500, dtype=np.float32), name="w"))
    shared = model.graph.initializers["w"].const_value
    model.graph.register_initializer(ir.Value(name="v", const_value=shared))
    save(model, tmp_path / "m.onnx", external_data=True)
    assert weight(tmp_path / "m.onnx", "w").numpy().tolist() == weight(tmp_path / "m.onnx", "v").numpy().tolist()


# The data file


def test_large_weights_go_outside_and_small_ones_stay(tmp_path: Path) -> None:
    model = holding(
        ir.Tensor(np.zeros(257, np.float32), name="large"), ir.Tensor(np.zeros(256, np.float32), name="small")
    )
    files = save(model, tmp_path / "m.onnx", external_data=True)
    assert files == [tmp_path / "m.onnx", tmp_path / "m.onnx.data"]
    assert files[1].stat().st_size == 257 * 4
    assert isinstance(weight(files[0], "large"), ir.ExternalTensor)
    assert not isinstance(weight(files[0], "small"), ir.ExternalTensor)


def test_without_large_weights_there_is_no_data_file(tmp_path: Path) -> None:
    assert save(holding(ir.Tensor(np.zeros(3), name="w")), tmp_path / "m.onnx", external_data=True) == [
        tmp_path / "m.onnx"
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_weights_stay_inside_when_nobody_asked(tmp_path: Path) -> None:
    assert len(save(holding(ir.Tensor(np.zeros(5000), name="w")), tmp_path / "m.onnx")) == 1


def test_weights_that_were_outside_stay_outside(tmp_path: Path) -> None:
    save(holding(ir.Tensor(np.zeros(5000), name="w")), tmp_path / "a.onnx", external_data=True)
    assert len(save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx")) == 2


def test_weights_can_be_taken_inside(tmp_path: Path) -> None:
    array = np.arange(5000.0)
    save(holding(ir.Tensor(array, name="w")), tmp_path / "a.onnx", external_data=True)
    assert len(save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx", external_data=False)) == 1
    np.testing.assert_array_equal(weight(tmp_path / "b.onnx").numpy(), array)


def test_weights_over_the_limit_go_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.graph.files.save.INLINE_LIMIT", 9999)
    assert len(save(holding(ir.Tensor(np.zeros(1250), name="w")), tmp_path / "m.onnx")) == 2


def test_weights_of_exactly_the_limit_stay_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.graph.files.save.INLINE_LIMIT", 10_000)  # 1,250 doubles
    assert len(save(holding(ir.Tensor(np.zeros(1250), name="w")), tmp_path / "m.onnx")) == 1


@pytest.mark.parametrize(("elements", "files"), [(475_000_000, 1), (475_000_001, 2)])
def test_the_limit_is_1_9_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elements: int, files: int) -> None:
    weight = ir.LazyTensor(lambda: ir.tensor(np.zeros(1)), ir.DataType.FLOAT, shape=ir.Shape([elements]), name="w")
    monkeypatch.setattr("onnxsmith.graph.files.save._serialise", lambda model, target: b"")
    monkeypatch.setattr("onnxsmith.graph.files.external.move_out", lambda model, data: data.touch())
    assert len(save(holding(weight), tmp_path / "m.onnx")) == files


def test_the_bytes_of_the_files_are_counted_before_they_move(tmp_path: Path) -> None:
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(holding(ir.Tensor(np.zeros(5000), name="w")), external_data=True)
        counted = stage.nbytes()
        files = stage.commit()
    assert counted == sum(file.stat().st_size for file in files)
    assert files[1].stat().st_size == 5000 * 8


@pytest.mark.parametrize("error", [ValueError, "EncodeError"])
def test_what_one_message_cannot_hold_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, error: object
) -> None:
    from google.protobuf.message import EncodeError

    def fails(_: object) -> None:
        raise EncodeError("Failed to serialize proto") if error == "EncodeError" else ValueError("over 2GB")

    monkeypatch.setattr("onnxsmith.graph.files.save.ir.to_proto", fails)
    with refused("save/too-large") as refusal:
        save(holding(), tmp_path / "m.onnx")
    assert refusal.problem.why.endswith("; a protocol buffer message has at most 2,147,483,647 bytes")


def test_descriptions_of_weights_go_with_them(tmp_path: Path) -> None:
    tensor = ir.Tensor(np.zeros(5000), name="w", doc_string="a weight", metadata_props={"key": "value"})
    save(holding(tensor), tmp_path / "m.onnx", external_data=True)
    found = weight(tmp_path / "m.onnx")
    assert (found.doc_string, found.metadata_props) == ("a weight", {"key": "value"})


def constant_outside(folder: Path, elements: int) -> Path:
    """A model whose `Constant` keeps its value in a file."""
    proto = parser.parse_model(HEAD + "g () => (double[n] y) { y = Constant() }")
    attribute = proto.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(onnx.TensorProto(name="k", data_type=11, dims=[elements], data_location=1))
    attribute.t.external_data.add(key="location", value="k.data")
    np.arange(elements, dtype=np.float64).tofile(folder / "k.data")
    (folder / "in.onnx").write_bytes(proto.SerializeToString())
    return folder / "in.onnx"


@pytest.mark.parametrize("external", [False, True, None])
@pytest.mark.parametrize("elements", [3, 5000])
def test_constants_that_were_outside_are_taken_inside(tmp_path: Path, external: bool | None, elements: int) -> None:
    source = constant_outside(tmp_path, elements)
    (tmp_path / "other").mkdir()
    save(load(source), tmp_path / "other" / "m.onnx", external_data=external)
    node = load(tmp_path / "other" / "m.onnx").graph.node(0)
    np.testing.assert_array_equal(node.attributes["value"].as_tensor().numpy(), np.arange(elements))


@pytest.mark.parametrize("elements", [3, 5000])
@pytest.mark.parametrize("external", [False, True])
def test_a_view_of_the_weights_does_not_hinder_saving(tmp_path: Path, external: bool, elements: int) -> None:
    proto = ir.to_proto(holding())
    proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=11, dims=[elements], data_location=1))
    proto.graph.initializer[0].external_data.add(key="location", value="w.data")
    np.arange(elements, dtype=np.float64).tofile(tmp_path / "w.data")
    (tmp_path / "in.onnx").write_bytes(proto.SerializeToString())
    model = load(tmp_path / "in.onnx")
    view = model.graph.initializers["w"].const_value.numpy()
    save(model, tmp_path / "out.onnx", external_data=external)
    np.testing.assert_array_equal(weight(tmp_path / "out.onnx").numpy(), view)


@pytest.mark.parametrize("external", [False, True])
def test_saving_leaves_the_model_as_it_was(tmp_path: Path, external: bool) -> None:
    save(holding(ir.Tensor(np.zeros(5000), name="w")), tmp_path / "a.onnx", external_data=True)
    model = load(tmp_path / "a.onnx")
    before = model.graph.initializers["w"].const_value
    save(model, tmp_path / "b.onnx", external_data=external)
    assert model.graph.initializers["w"].const_value is before
    assert isinstance(before, ir.ExternalTensor)
    assert before.location == "a.onnx.data"


# The target


def test_a_missing_folder_is_told(tmp_path: Path, refused: Refused) -> None:
    with refused("save/no-folder"):
        save(holding(), tmp_path / "nobody" / "m.onnx")


def test_a_path_under_a_file_has_no_folder(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").touch()
    with refused("save/no-folder"):
        save(holding(), tmp_path / "file" / "m.onnx")


def test_a_folder_is_no_target(tmp_path: Path, refused: Refused) -> None:
    with refused("save/failed"):
        save(holding(), tmp_path)


def test_text_is_not_written(tmp_path: Path, refused: Refused) -> None:
    with refused("save/failed"):
        save(holding(), tmp_path / "m.onnxtxt")


@pytest.mark.parametrize("name", ["m.json", "m.textproto", "m"])
@pytest.mark.parametrize("external", [False, True])
def test_the_name_does_not_change_the_format(tmp_path: Path, name: str, external: bool) -> None:
    save(holding(ir.Tensor(np.zeros(5000), name="w")), tmp_path / name, external_data=external)
    assert load(tmp_path / name).graph.name == "g"


def test_a_target_may_be_text_and_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(holding(), "m.onnx")
    assert (tmp_path / "m.onnx").is_file()


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_link_stays_a_link(tmp_path: Path, of: str) -> None:
    (tmp_path / "real").mkdir()
    if of == "file":
        (tmp_path / "m.onnx").symlink_to("real/m.onnx")
        target = tmp_path / "m.onnx"
    else:
        (tmp_path / "link").symlink_to("real")
        target = tmp_path / "link" / "m.onnx"
    save(holding(), target)
    assert (tmp_path / ("m.onnx" if of == "file" else "link")).is_symlink()
    assert load(tmp_path / "real" / "m.onnx").graph.name == "g"


@pytest.mark.parametrize("make", [lambda link: link.symlink_to("real/m.onnx")])
def test_a_link_into_another_folder_takes_no_data_file(
    tmp_path: Path, make: Callable[[Path], None], refused: Refused
) -> None:
    (tmp_path / "real").mkdir()
    make(tmp_path / "m.onnx")
    with refused("save/failed"):
        save(holding(ir.Tensor(np.zeros(5000), name="w")), tmp_path / "m.onnx", external_data=True)
    assert list((tmp_path / "real").iterdir()) == []
