"""What loads, loads; everything else is refused with its own problem, and nothing crashes."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper, parser

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import from_proto, load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import opset_conversion
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
ADD = HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"


@pytest.fixture(scope="module")
def real() -> bytes:
    """A model of about 100 kB: weights of several dtypes, a branch, a constant, metadata."""
    proto = parser.parse_model(
        HEAD + "g (float[n,100] x, bool c) => (float[n,100] y) {"
        " h = MatMul(x, w)\n t = Gelu(h)\n k = Constant<value = float[2] {1, 2}>()\n"
        " y = If(c) <then_branch = a () => (float[n,100] p) { p = Mul(t, s) },"
        " else_branch = b () => (float[n,100] q) { q = Neg(t) }> }"
    )
    rng = np.random.default_rng(0)
    proto.graph.initializer.append(numpy_helper.from_array(rng.normal(size=(100, 250)).astype("f4")[:, :100], "w"))
    proto.graph.initializer.append(numpy_helper.from_array(rng.normal(size=(100,)).astype("f4"), "s"))
    proto.graph.initializer.append(numpy_helper.from_array(rng.integers(0, 9, (60_000,), np.int8), "unused"))
    onnx.helper.set_model_props(proto, {"made by": "a test"})
    onnx.checker.check_model(proto)
    data: bytes = proto.SerializeToString()
    assert 95_000 < len(data) < 110_000
    return data


def written(folder: Path, data: bytes, name: str = "m.onnx") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.pkl", b"x" * 100)
    return file.getvalue()


# What loads


def test_a_model_loads_from_its_path(tmp_path: Path, real: bytes) -> None:
    model = load(written(tmp_path, real))
    assert [node.op_type for node in model.graph] == ["MatMul", "Gelu", "Constant", "If"]


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_may_be_text(tmp_path: Path, real: bytes, kind: type) -> None:
    assert load(kind(written(tmp_path, real))).graph.name == "g"


def test_weights_read_equal(tmp_path: Path, real: bytes) -> None:
    wanted = numpy_helper.to_array(onnx.ModelProto.FromString(real).graph.initializer[0])
    tensor = load(written(tmp_path, real)).graph.initializers["w"].const_value
    assert tensor is not None
    np.testing.assert_array_equal(tensor.numpy(), wanted)


def test_an_onnxtxt_file_is_read_as_text(tmp_path: Path) -> None:
    assert len(load(written(tmp_path, ADD.encode(), "m.onnxtxt")).graph) == 1


def test_a_message_loads_and_stays_its_owners(real: bytes) -> None:
    proto = onnx.ModelProto.FromString(real)
    model = load(proto)
    model.graph.initializers["w"].name = "renamed"
    ir.to_proto(model)
    assert proto.SerializeToString() == real


def test_a_loaded_model_is_given_back(real: bytes) -> None:
    model = load(onnx.ModelProto.FromString(real))
    assert load(model) is model


def test_the_other_name_of_the_default_domain_becomes_the_short_one() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["ai.onnx": 20]>\ng (float x) => (float y) { y = ai.onnx.Abs(x) }'
    )
    assert model.opset_imports == {"": 20}
    assert model.graph.node(0).domain == ""


# What is no model


def test_a_missing_file_is_not_found(tmp_path: Path, refused: Refused) -> None:
    with refused("model/not-found"):
        load(tmp_path / "nobody.onnx")


def test_a_path_under_a_file_is_not_found(tmp_path: Path, refused: Refused) -> None:
    with refused("model/not-found"):
        load(written(tmp_path, b"x") / "m.onnx")


def test_a_dangling_link_is_not_found(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "m.onnx").symlink_to("nobody.onnx")
    with refused("model/not-found"):
        load(tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["m\0.onnx", "m" * 300 + ".onnx"])
def test_a_name_that_no_file_can_have_is_unreadable(tmp_path: Path, refused: Refused, name: str) -> None:
    with refused("model/unreadable"):
        load(tmp_path / name)


def test_a_folder_is_not_a_file(tmp_path: Path, refused: Refused) -> None:
    with refused("model/not-a-file"):
        load(tmp_path)


def package(folder: Path, component: object, version: str = "1.0") -> Path:
    """A folder as a model package of onnxruntime: a manifest with one component, and the file of one variant."""
    (folder / "cpu").mkdir()
    written(folder / "cpu", b"x")
    manifest = {"schema_version": version, "components": {"net": component}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def variant(folder: str, file: str = "m.onnx") -> dict[str, object]:
    return {"variant_directory": folder, "executor_info": {"ort": {"model_file": file}}}


def test_a_model_package_is_named_with_its_variants(tmp_path: Path) -> None:
    package(tmp_path, {"variants": {"cpu": variant("cpu"), "cuda": variant("gpu")}})
    for path in (tmp_path, tmp_path / "manifest.json"):
        with pytest.raises(OnnxsmithError) as caught:
            load(path)
        found = caught.value.problem
        assert found.id == "model/package"
        assert found.why == "its variants are: cpu (cpu/m.onnx); cuda (gpu/m.onnx, which is missing)"
        assert found.fix == f"give the file of one variant: {str(tmp_path / 'cpu' / 'm.onnx')!r}"


def test_a_component_in_a_file_of_its_own(tmp_path: Path) -> None:
    package(tmp_path, "parts")
    (tmp_path / "parts").mkdir()
    held = {"variants": {"cpu": {"executor_info": {"ort": "ort.json"}, "variant_directory": "../cpu"}, "npu": {}}}
    (tmp_path / "parts" / "component.json").write_text(json.dumps(held))
    (tmp_path / "cpu" / "ort.json").write_text('{"model_file": "m.onnx"}')
    with pytest.raises(OnnxsmithError) as caught:
        load(tmp_path)
    assert caught.value.problem.why == "its variants are: cpu (cpu/m.onnx); npu"


def test_no_file_outside_of_a_package_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps({"variants": {"secret": {}}}))
    (tmp_path / "package").mkdir()
    with pytest.raises(OnnxsmithError) as caught:
        load(package(tmp_path / "package", "../secret.json"))
    assert caught.value.problem.why == "it lists no variants"


@pytest.mark.parametrize(
    ("component", "why"),
    [({"variants": {"cpu": variant("cpu")}}, "its format 2.1 is newer than 1; its variants are: cpu (cpu/m.onnx)"),
     ([{"kind": "npu"}], "its format 2.1 is newer than 1; it lists no variants"),
     ("gone", "its format 2.1 is newer than 1; it lists no variants")],
)  # fmt: skip
def test_a_model_package_of_a_newer_format(tmp_path: Path, component: object, why: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        load(package(tmp_path, component, "2.1"))
    assert (caught.value.problem.id, caught.value.problem.why) == ("model/package", why)
    assert str(tmp_path / "cpu" / "m.onnx") in caught.value.problem.fix


def test_a_folder_with_another_manifest_is_not_a_file(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "a web app"}')
    with refused("model/not-a-file"):
        load(tmp_path)


def test_an_empty_file_is_empty(tmp_path: Path, refused: Refused) -> None:
    with refused("model/empty"):
        load(written(tmp_path, b""))


def test_a_file_over_2_gb_is_too_large(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)
    with refused("model/too-large"):
        load(path)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS"),
        (zipped(), "zip"),
        *((pickle.dumps({"w": [1.0]}, protocol=n), "pickle") for n in (2, 4, 5)),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\n <!doctype html>", "web page"),
        (b"<HTML><body>404</body></HTML>", "web page"),
        (b"\x1f\x8b\x08\x00" + b"\0" * 20, "gzip"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x1c\x00\x00\x00ORTM" + b"\0" * 20, ".ort"),
        (b"\x1c\x00\x00\x00TFL3" + b"\0" * 20, "TensorFlow Lite"),
        ((n := len(json.dumps({"w": {}}))).to_bytes(8, "little") + json.dumps({"w": {}}).encode(), "safetensors"),
    ],
)
def test_another_format_is_called_by_its_name(tmp_path: Path, refused: Refused, data: bytes, named: str) -> None:
    with refused("model/garbage") as refusal:
        load(written(tmp_path, data))
    assert named in refusal.problem.why


@pytest.mark.parametrize("data", [b"\0" * 64, b"\xff" * 64, b"hello, world", b"\x00", b"\x08"])
def test_garbage_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(OnnxsmithError):
        load(written(tmp_path, data))


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "com.example"])
@pytest.mark.parametrize("version", [-1, 2**31, 2**40, -(2**63)])
def test_a_version_that_onnx_cannot_read(tmp_path: Path, refused: Refused, domain: str, version: int) -> None:
    graph = parser.parse_graph("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)])
    with refused("model/invalid") as refusal:
        load(written(tmp_path, model.SerializeToString()))
    assert f"version {version} of the operator set {domain or 'ai.onnx'}" in refusal.problem.what


@given(data=st.binary(min_size=1, max_size=300))
def test_random_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    with pytest.raises(OnnxsmithError):
        load(written(tmp_path_factory.getbasetemp(), data, "random.onnx"))


@pytest.mark.parametrize("sixteenth", range(1, 16))
def test_a_file_that_was_cut_off_is_truncated(tmp_path: Path, real: bytes, refused: Refused, sixteenth: int) -> None:
    with refused("model/truncated"):
        load(written(tmp_path, real[: len(real) * sixteenth // 16]))


def test_a_message_without_a_graph_is_no_model(tmp_path: Path, refused: Refused) -> None:
    proto = onnx.ModelProto(ir_version=10, producer_name="a test")
    with refused("model/no-graph"):
        load(written(tmp_path, proto.SerializeToString()))


def test_an_empty_graph_is_no_model(refused: Refused) -> None:
    with refused("model/no-graph"):
        from_text(HEAD + "g () => () { }")


def test_flipped_bytes_never_crash(tmp_path: Path, real: bytes) -> None:
    rng = random.Random(1)
    outline = [*range(400), *range(len(real) - 900, len(real))]  # names, types and nodes rather than weights
    for place in rng.sample(outline, 250):
        damaged = bytearray(real)
        damaged[place] ^= 1 << rng.randrange(8)
        try:
            model = load(written(tmp_path, bytes(damaged)))
        except OnnxsmithError:
            continue
        ir.to_proto(model.clone())


@given(place=st.integers(0, 299), byte=st.integers(0, 255))
def test_a_small_model_with_any_other_byte_is_read_or_refused(place: int, byte: int) -> None:
    data = bytearray(parser.parse_model(ADD).SerializeToString())
    data[place % len(data)] = byte
    try:
        model = load(onnx.ModelProto.FromString(bytes(data)))
    except OnnxsmithError:
        return
    except Exception as error:  # noqa: BLE001 — FromString is the test's own and may refuse
        assert type(error).__name__ == "DecodeError"  # noqa: PT017
        return
    for value in model.graph.initializers.values():
        assert value.const_value is not None
        value.const_value.numpy()


# Versions


@pytest.mark.parametrize(
    ("head", "problem_id"),
    [
        ('ir_version: 10, opset_import: ["": 999]', "model/opset-too-new"),
        ('ir_version: 10, opset_import: ["ai.onnx": 999]', "model/opset-too-new"),
        ('ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 99]', "model/opset-too-new"),
        ('ir_version: 999, opset_import: ["": 20]', "model/ir-too-new"),
        ("ir_version: 10", "model/no-opset"),
        ('ir_version: 10, opset_import: ["": 20, "": 13]', "model/invalid"),
        ('ir_version: 10, opset_import: ["": 20, "ai.onnx": 13]', "model/invalid"),
    ],
)
def test_versions_that_cannot_be_read_are_refused(head: str, problem_id: str, refused: Refused) -> None:
    with refused(problem_id):
        from_text(f"<{head}>\ng (float x) => (float y) {{ y = Abs(x) }}")


def test_a_function_at_an_opset_too_new_is_refused(refused: Refused) -> None:
    with refused("model/opset-too-new"):
        from_text(
            '<ir_version: 10, opset_import: ["": 20, "l": 1]>\ng (float x) => (float y) { y = l.f(x) }\n'
            '<domain: "l", opset_import: ["": 999]> f (a) => (b) { b = Abs(a) }'
        )


def test_an_old_model_needs_no_opset() -> None:
    model = from_text("<ir_version: 2>\ng (float x) => (float y) { y = Abs(x) }")
    assert len(model.graph) == 1


# What would be lost


def sparse() -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("", onnx.TensorProto.INT64, [1], [1]),
        [4],
    )


def with_untyped_attribute(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].attribute.append(onnx.AttributeProto(name="axis", i=3))


def with_sparse_list(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].attribute.add(name="many", type=onnx.AttributeProto.SPARSE_TENSORS)


def with_sparse_attribute(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse()))


@pytest.mark.parametrize("spoil", [with_untyped_attribute, with_sparse_list, with_sparse_attribute])
def test_what_could_not_be_kept_is_refused(spoil: object, refused: Refused) -> None:
    proto = parser.parse_model(ADD)
    spoil(proto)
    with refused("model/not-carried"):
        load(proto)


# Tensors inside the file


@pytest.mark.parametrize(
    "tensor",
    [
        onnx.TensorProto(name="w", data_type=1, dims=[2], raw_data=b"\0" * 7),
        onnx.TensorProto(name="w", data_type=1, dims=[2], float_data=[1.0]),
        onnx.TensorProto(name="w", data_type=1, dims=[2]),
        onnx.TensorProto(name="w", data_type=1, dims=[2], int64_data=[1, 2]),
        onnx.TensorProto(name="w", data_type=1, dims=[2], int32_data=[1, 2]),
        onnx.TensorProto(name="w", data_type=1, dims=[2], float_data=[1, 2], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=1, dims=[2], float_data=[1, 2], int64_data=[1, 2]),
        onnx.TensorProto(name="w", data_type=1, dims=[-2, -1], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=1, dims=[2**62, 2**62], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=0, dims=[2], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=77, dims=[2], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=8, dims=[2], raw_data=b"\0" * 8),
        onnx.TensorProto(name="w", data_type=8, dims=[2], string_data=[b"a"]),
        onnx.TensorProto(name="w", data_type=14, dims=[2], float_data=[1, 2, 3]),
        onnx.TensorProto(name="w", data_type=22, dims=[3], int32_data=[1, 2, 3]),
    ],
)
def test_a_tensor_that_does_not_hold_its_shape_is_invalid(tensor: onnx.TensorProto, refused: Refused) -> None:
    proto = parser.parse_model(ADD)
    proto.graph.initializer[0].CopyFrom(tensor)
    with refused("model/invalid") as refusal:
        load(proto)
    assert "tensor 'w'" in refusal.problem.where


def marked() -> onnx.ModelProto:
    """A model in which each text is another letter, doubled."""
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]>\nAA (float[BB] CC) => (float DD) { [EE] DD = FF(CC) }'
    )
    proto.doc_string, proto.graph.node[0].doc_string, proto.graph.input[0].type.denotation = "GG", "HH", "II"
    helper.set_model_props(proto, {"JJ": "KK"})
    helper.set_model_props(proto.graph.node[0], {"LL": "MM"})
    proto.graph.node[0].attribute.add(name="NN", type=onnx.AttributeProto.INT)
    tensor = numpy_helper.from_array(np.zeros(1), "OO")
    helper.set_model_props(tensor, {"PP": "QQ"})
    proto.graph.initializer.append(tensor)
    proto.opset_import.add(domain="RR", version=1)
    proto.functions.append(helper.make_function("SS", "TT", ["UU"], ["VV"], [], []))
    proto.functions[0].node.add(op_type="Abs", input=["UU"], output=["VV"])
    return proto


@pytest.mark.parametrize("letter", "ABCDEFGHIJKLMNOPQRSTUV")
def test_a_text_that_is_not_utf8_is_refused(letter: str, refused: Refused) -> None:
    data = marked().SerializeToString()
    assert letter.encode() * 2 in data
    with refused("model/invalid"):
        from_proto(onnx.ModelProto.FromString(data.replace(letter.encode() * 2, b"\xff\xfe")), where="a test")


def test_a_message_nested_beyond_measure_is_refused(refused: Refused) -> None:
    proto = parser.parse_model(ADD)
    graph = proto.graph
    for _ in range(2000):
        node = graph.node.add(op_type="If")
        attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        graph = attribute.g
    with refused("model/invalid"):
        from_proto(proto, where="a test")


@pytest.mark.parametrize("empty", [False, True])
def test_a_declaration_without_a_type_does_not_hide_what_an_initializer_is(empty: bool) -> None:
    """torch declares a weight with metadata and no type."""
    proto = parser.parse_model(
        HEAD + "g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> { y = If(c) "
        "<then_branch = a () => (float[2] p) <float[2] v = {1, 2}> { p = Add(x, v) }, "
        "else_branch = b () => (float[2] q) { q = Add(x, w) }> }"
    )
    graphs = (proto.graph, proto.graph.node[0].attribute[0].g)
    for graph in graphs:
        info = onnx.ValueInfoProto(name=graph.initializer[0].name)
        if empty:
            info.type.tensor_type.elem_type = 0
        else:
            info.metadata_props.add(key="kind", value="PARAMETER")
        graph.value_info.append(info)
    model = from_proto(proto, where="the test")
    found = [value for graph in walk.graphs(model) for value in graph.initializers.values()]
    assert [(value.name, value.dtype, str(value.shape)) for value in found] == [
        ("w", ir.DataType.FLOAT, "[2]"),
        ("v", ir.DataType.FLOAT, "[2]"),
    ]
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_a_weight_that_torch_declares_without_a_type_is_written_in_an_earlier_opset() -> None:
    proto = parser.parse_model(
        HEAD + "g (float[2,4] x) => (float[2,4] y) <float[4] w = {1, 2, 3, 4}> { y = LayerNormalization(x, w) }"
    )
    info = proto.graph.value_info.add(name="w")
    info.metadata_props.add(key="kind", value="PARAMETER")
    assert opset_conversion.of(opset_conversion.convert(from_proto(proto, where="the test"), 13)) == 13
