"""Weights in other files are read from the model's own folder, whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper, parser

from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save, write_referring
from onnxsmith.graph.structure import walk
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20, "l": 1]>\n'
ADD = HEAD + "g (float[4] x) => (float[4] y) { y = Add(x, w) }"
DATA = np.arange(8, dtype=np.float32)
"""What the data file holds: two tensors of four floats."""


def refer(tensor: onnx.TensorProto, location: str = "m.data", **entries: object) -> onnx.TensorProto:
    """Moves the tensor's values out: it becomes a reference with these entries."""
    for field in ("raw_data", "float_data", "external_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def outside(name: str = "w", location: str = "m.data", **entries: object) -> onnx.TensorProto:
    return refer(numpy_helper.from_array(DATA[:4], name), location, **entries)


def model(folder: Path, *tensors: onnx.TensorProto) -> Path:
    """A model file with these initializers, beside the data file `m.data`."""
    folder.mkdir(exist_ok=True)
    proto = parser.parse_model(ADD)
    proto.graph.initializer.extend(tensors or (outside(),))
    return put(folder, proto)


def put(folder: Path, proto: onnx.ModelProto) -> Path:
    DATA.tofile(folder / "m.data")
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


def values(path: Path) -> dict[str, list[float]]:
    found = load(path).graph.initializers
    return {name: value.const_value.numpy().tolist() for name, value in found.items() if value.const_value is not None}


# What is followed


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    assert values(model(tmp_path)) == {"w": [0, 1, 2, 3]}


def test_an_offset_and_a_length_are_kept_to(tmp_path: Path) -> None:
    assert values(model(tmp_path, outside(offset=16, length=16))) == {"w": [4, 5, 6, 7]}


def test_one_file_serves_several_tensors(tmp_path: Path) -> None:
    path = model(tmp_path, outside("w"), outside("v", offset=16, length=16), outside("u", offset=4))
    assert values(path) == {"w": [0, 1, 2, 3], "v": [4, 5, 6, 7], "u": [1, 2, 3, 4]}


def test_weights_stay_on_disk_until_they_are_read(tmp_path: Path) -> None:
    tensor = load(model(tmp_path)).graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert tensor.raw is None


@pytest.mark.parametrize("location", ["sub/m.data", "./m.data", "sub/./m.data"])
def test_a_location_may_name_a_folder_below(tmp_path: Path, location: str) -> None:
    path = model(tmp_path, outside(location=location))
    (tmp_path / "sub").mkdir()
    DATA.tofile(tmp_path / "sub" / "m.data")
    assert values(path) == {"w": [0, 1, 2, 3]}


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    path = model(tmp_path, outside(location="link.data"))
    (tmp_path / "link.data").symlink_to("m.data")
    assert values(path) == {"w": [0, 1, 2, 3]}


def test_a_linked_folder_of_models_is_followed(tmp_path: Path) -> None:
    path = model(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert values(tmp_path / "link" / path.name) == {"w": [0, 1, 2, 3]}


def test_a_model_in_the_current_folder_finds_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tmp_path)
    monkeypatch.chdir(tmp_path)
    loaded = load("m.onnx")
    monkeypatch.chdir("/")
    assert loaded.graph.initializers["w"].const_value.numpy().tolist() == [0, 1, 2, 3]


def test_a_tensor_without_elements_needs_no_bytes(tmp_path: Path) -> None:
    path = model(tmp_path, refer(numpy_helper.from_array(np.zeros((0, 3), np.float32), "w"), "empty.data"))
    (tmp_path / "empty.data").touch()
    assert values(path) == {"w": []}


def test_keys_that_others_add_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filters for warnings belong to the process, so no thread may replace them for the time of a call."""
    path = model(tmp_path, outside(prepacked_0="kernel|0|16", checksum="00"))
    with monkeypatch.context() as patch:
        patch.delattr("warnings.catch_warnings")
        found = values(path)
    assert found == {"w": [0, 1, 2, 3]}


@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2"])
def test_dtypes_that_share_bytes_are_measured_packed(tmp_path: Path, dtype: str) -> None:
    array = np.array([1, 0, 1, 1, 0], ir.DataType[dtype].numpy())
    packed = ir.Tensor(array).tobytes()
    tensor = refer(ir.to_proto(ir.Tensor(array, name="w")), "small.data", length=len(packed))
    path = model(tmp_path, tensor)
    (tmp_path / "small.data").write_bytes(packed)
    assert values(path)["w"] == array.tolist()


# Where they may stand


def in_a_constant(proto: onnx.ModelProto) -> None:
    attribute = proto.graph.node.add(op_type="Constant", output=["k"]).attribute.add(name="value", type=4)
    attribute.t.CopyFrom(outside("k"))


def in_a_branch(proto: onnx.ModelProto) -> None:
    node = parser.parse_node("z = If(c) <then_branch = a () => (float[4] p) { p = Add(x, v) }>")
    node.input[0] = "c"
    node.attribute[0].g.initializer.append(outside("v"))
    proto.graph.input.add(name="c").type.tensor_type.elem_type = onnx.TensorProto.BOOL
    proto.graph.node.append(node)


def in_a_function(proto: onnx.ModelProto) -> None:
    function = parser.parse_function('<domain: "l", opset_import: ["": 20]> f (a) => (b) { b = Constant() }')
    attribute = function.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(outside("k"))
    proto.functions.append(function)


def in_a_default_of_a_function(proto: onnx.ModelProto) -> None:
    function = parser.parse_function('<domain: "l", opset_import: ["": 20]> f (a) => (b) { b = Abs(a) }')
    attribute = function.attribute_proto.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(outside("k"))
    proto.functions.append(function)


def in_a_branch_of_a_function(proto: onnx.ModelProto) -> None:
    function = parser.parse_function(
        '<domain: "l", opset_import: ["": 20]> f (c) => (b) { b = If(c) <then_branch = a () => (float[4] v) {}> }'
    )
    function.node[0].attribute[0].g.initializer.append(outside("v"))
    proto.functions.append(function)


def in_a_list(proto: onnx.ModelProto) -> None:
    attribute = proto.graph.node.add(op_type="Odd", domain="l", output=["k"]).attribute.add(name="values", type=9)
    attribute.tensors.append(outside("k"))


PLACES = [in_a_constant, in_a_branch, in_a_function, in_a_default_of_a_function, in_a_branch_of_a_function, in_a_list]


def placed(folder: Path, place: object) -> Path:
    proto = parser.parse_model(ADD)
    proto.graph.initializer.append(numpy_helper.from_array(DATA[:4], "w"))
    place(proto)
    return put(folder, proto)


@pytest.mark.parametrize("place", PLACES)
def test_weights_are_found_wherever_they_stand(tmp_path: Path, place: object) -> None:
    outer = [t for t in walk.tensors(load(placed(tmp_path, place))) if isinstance(t, ir.ExternalTensor)]
    assert [tensor.numpy().tolist() for tensor in outer] == [[0, 1, 2, 3]]


@pytest.mark.parametrize("place", PLACES)
def test_missing_weights_are_found_wherever_they_stand(tmp_path: Path, place: object, refused: Refused) -> None:
    path = placed(tmp_path, place)
    (tmp_path / "m.data").unlink()
    with refused("model/external-missing"):
        load(path)


@pytest.mark.parametrize("place", PLACES)
def test_in_memory_leaves_nothing_outside(tmp_path: Path, place: object) -> None:
    before = load(placed(tmp_path, place))
    inside = in_memory(before)
    assert not any(isinstance(tensor, ir.ExternalTensor) for tensor in walk.tensors(inside))
    wanted = [tensor.numpy().tolist() for tensor in walk.tensors(before)]
    assert [tensor.numpy().tolist() for tensor in walk.tensors(inside)] == wanted


def test_in_memory_keeps_what_is_larger_outside(tmp_path: Path) -> None:
    before = load(model(tmp_path, outside("w"), outside("v", offset=16)))
    kinds = [isinstance(tensor, ir.ExternalTensor) for tensor in walk.tensors(in_memory(before, up_to=15))]
    assert kinds == [True, True]


def test_in_memory_of_a_model_without_external_data_is_the_model() -> None:
    loaded = load(parser.parse_model(ADD.replace("Add(x, w)", "Abs(x)")))
    assert in_memory(loaded) is loaded


# What is not followed


@pytest.mark.parametrize(
    "location",
    [
        "../m.data",
        "sub/../../m.data",
        "..",
        "/etc/passwd",
        "..\\m.data",
        "\\m.data",
        "C:\\m.data",
        "C:m.data",
        "file:m",
    ],
)
def test_a_location_that_leads_out_is_refused(tmp_path: Path, location: str, refused: Refused) -> None:
    DATA.tofile(tmp_path / "m.data")
    with refused("model/external-outside"):
        load(model(tmp_path / "inner", outside(location=location)))


def test_a_link_that_leads_out_is_refused(tmp_path: Path, refused: Refused) -> None:
    DATA.tofile(tmp_path / "secret")
    path = model(tmp_path / "inner", outside(location="link.data"))
    (path.parent / "link.data").symlink_to(tmp_path / "secret")
    with refused("model/external-outside") as raised:
        load(path)
    assert str(tmp_path / "secret") in raised.problem.fix
    assert "cp " not in raised.problem.fix


def test_a_linked_folder_that_leads_out_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "away").mkdir()
    DATA.tofile(tmp_path / "away" / "m.data")
    path = model(tmp_path / "inner", outside(location="link/m.data"))
    (path.parent / "link").symlink_to(tmp_path / "away")
    with refused("model/external-outside"):
        load(path)


def test_a_hard_link_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = model(tmp_path)
    os.link(tmp_path / "m.data", tmp_path / "other")
    with refused("model/external-outside"):
        load(path)


@pytest.mark.parametrize("location", ["nobody.data", "m.data/x", "d" * 300, "loop"])
def test_missing_data_is_missing(tmp_path: Path, location: str, refused: Refused) -> None:
    path = model(tmp_path, outside(location=location))
    (tmp_path / "loop").symlink_to("loop")
    with refused("model/external-missing"):
        load(path)


@pytest.mark.parametrize("location", ["", ".", "m\0.data"])
def test_a_location_that_names_nothing_is_damage(tmp_path: Path, location: str, refused: Refused) -> None:
    with refused("model/external-damaged"):
        load(model(tmp_path, outside(location=location)))


def test_no_location_at_all_is_damage(tmp_path: Path, refused: Refused) -> None:
    tensor = outside()
    del tensor.external_data[:]
    with refused("model/external-damaged"):
        load(model(tmp_path, tensor))


@pytest.mark.parametrize("name", ["folder", "pipe"])
def test_a_location_that_is_no_file_is_damage(tmp_path: Path, name: str, refused: Refused) -> None:
    path = model(tmp_path, outside(location=name))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with refused("model/external-damaged"):
        load(path)


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 20},
        {"offset": 20, "length": 16},
        {"offset": -4},
        {"offset": -4, "length": 16},
        {"offset": 2**70},
        {"offset": "sixteen"},
        {"offset": "1.5"},
        {"offset": "\u0660"},
        {"offset": "1_6"},
        {"offset": "9" * 10_000},
        {"length": 15},
        {"length": 17},
        {"length": 2**70},
        {"length": -16},
        {"length": "all"},
    ],
)
def test_a_reference_that_does_not_fit_is_damage(tmp_path: Path, entries: dict[str, object], refused: Refused) -> None:
    with refused("model/external-damaged"):
        load(model(tmp_path, outside(**entries)))


def test_a_data_file_that_was_cut_off_is_damage(tmp_path: Path, refused: Refused) -> None:
    path = model(tmp_path)
    (tmp_path / "m.data").write_bytes(b"\0" * 15)
    with refused("model/external-damaged") as refusal:
        load(path)
    assert "16 bytes are needed" in refusal.problem.what
    assert "the file has 15" in refusal.problem.what


@pytest.mark.parametrize(
    "spoiled",
    [
        {"data_type": onnx.TensorProto.STRING},
        {"data_type": onnx.TensorProto.UNDEFINED},
        {"data_type": 77},
        {"dims": [-2, -2]},
        {"dims": [2**40, 2**40]},
    ],
)
def test_a_tensor_whose_size_makes_no_sense_is_damage(
    tmp_path: Path, spoiled: dict[str, object], refused: Refused
) -> None:
    tensor = outside()
    for field, value in spoiled.items():
        tensor.ClearField(field)
        tensor.MergeFrom(onnx.TensorProto(**{field: value}))
    with refused("model/external-damaged"):
        load(model(tmp_path, tensor))


def test_a_message_does_not_say_where_its_weights_are(refused: Refused) -> None:
    proto = parser.parse_model(ADD)
    proto.graph.initializer.append(outside())
    with refused("model/external-missing"):
        load(proto)


def test_text_with_external_data_reads_it_beside_its_file(tmp_path: Path) -> None:
    model(tmp_path)
    text = (
        '<ir_version: 10, opset_import: ["": 20]>\ng (float[4] x) => (float[4] y)'
        ' <float[4] w = ["location": "m.data", "offset": "16", "length": "16"]> { y = Add(x, w) }'
    )
    (tmp_path / "m.onnxtxt").write_text(text)
    assert values(tmp_path / "m.onnxtxt") == {"w": [4, 5, 6, 7]}


# A model that goes into another folder without its weights


def large(folder: Path) -> Path:
    """A model whose weight of 4,096 bytes lies in a data file."""
    made = load(model(folder, numpy_helper.from_array(DATA[:4], "w")))
    made.graph.initializers["w"].const_value = ir.tensor(np.ones((256, 4), np.float32), name="w")
    save(made, folder / "large.onnx", external_data=True)
    return folder / "large.onnx"


def test_a_model_is_written_without_its_data_which_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    source = large(tmp_path / "a")
    folder = write_referring(load(source), tmp_path / "small.onnx")
    assert folder == (tmp_path / "a").absolute()
    assert (tmp_path / "small.onnx").stat().st_size < 1024
    (weight,) = onnx.load(tmp_path / "small.onnx", load_external_data=False).graph.initializer
    assert weight.data_location == onnx.TensorProto.EXTERNAL


def test_weights_in_two_folders_or_in_none_are_not_referred_to(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    one, two = load(large(tmp_path / "a")), load(large(tmp_path / "b"))
    weight = two.graph.initializers["w"]
    weight.name = "w2"
    one.graph.register_initializer(ir.Value(name="w2", const_value=weight.const_value))
    assert write_referring(one, tmp_path / "small.onnx") is None
    assert (
        write_referring(load(model(tmp_path, numpy_helper.from_array(DATA[:4], "w"))), tmp_path / "small.onnx") is None
    )
    assert not (tmp_path / "small.onnx").exists()


def test_what_is_too_large_for_one_file_is_not_referred_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.graph.files.save.INLINE_LIMIT", 100)  # the data file has 4,096 bytes
    held = load(large(tmp_path))
    for name, elements, fits in (("u", 25, True), ("v", 1, False)):  # 100 bytes, and 4 more
        tensor = ir.tensor(np.ones(elements, np.float32), name=name)
        held.graph.register_initializer(ir.Value(name=name, const_value=tensor))
        assert (write_referring(held, tmp_path / f"{name}.onnx") is not None) == fits
