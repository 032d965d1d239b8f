"""The steps `preprocess` and `remove-processing`: pictures as Pillow processes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from PIL import Image

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
NET = HEAD + "net (float[n,3,12,10] x) => (float[n,3,12,10] y) { y = Neg(x) }"
FREE = HEAD + "net (float[n,3,h,w] x) => (float[n,3,h,w] y) { y = Neg(x) }"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZES = [(1, 1), (12, 10), (31, 17), (16, 40), (7, 6), (60, 25)]


def pixels(height: int, width: int, channels: int = 3) -> np.ndarray:
    noise = np.random.default_rng(height * 100 + width).integers(0, 256, (2, height, width, channels))
    return np.where(noise > 200, 255, np.where(noise < 50, 0, noise)).astype(np.uint8)


def edited(text: str, folder: Path, **fields: Any) -> Path:
    onnxsmith.save(from_text(text), folder / "m.onnx")
    with onnxsmith.edit(folder / "m.onnx", folder / "e.onnx") as m:
        m.preprocess(**fields)
    assert m.result is not None
    assert m.result.report.verdict.exit_code == 0
    return folder / "e.onnx"


def result(file: Path, picture: np.ndarray) -> np.ndarray:
    name = onnxsmith.load(file).graph.inputs[0].name
    return -np.asarray(onnxsmith.run(file, {name: picture}).outputs["y"]).astype(np.float64)


def resized(picture: np.ndarray, height: int, width: int, how: str) -> np.ndarray:
    """One channel after the other, by Pillow."""
    planes = [Image.fromarray(np.ascontiguousarray(picture[..., at])) for at in range(picture.shape[-1])]
    kind = Image.Resampling[how.upper()]
    return np.stack([np.asarray(one.resize((width, height), kind)) for one in planes]).astype(np.float64)


@pytest.mark.parametrize("how", ["bilinear", "bicubic", "nearest"])
def test_a_stretched_picture(how: str, tmp_path: Path) -> None:
    file = edited(NET, tmp_path, resize=how, mean=MEAN, std=STD)
    for size in SIZES:
        found = result(file, pixels(*size)) * 255 * np.reshape(STD, (-1, 1, 1)) + 255 * np.reshape(MEAN, (-1, 1, 1))
        expected = [resized(one, 12, 10, how) for one in pixels(*size)]
        assert np.abs(found - expected).max() <= (1e-3 if how == "nearest" or size == (12, 10) else 1.001)


def test_a_cropped_picture(tmp_path: Path) -> None:
    file = edited(NET, tmp_path, fit="crop", shorter=15, resize="bicubic", colour="bgr", rescale=1.0)
    for height, width in SIZES:
        size = (height * 15 // min(height, width), width * 15 // min(height, width))
        top, left = (size[0] - 12) // 2, (size[1] - 10) // 2
        levels = [resized(one, *size, "bicubic")[::-1] for one in pixels(height, width)]
        expected = np.array(levels)[:, :, top : top + 12, left : left + 10]
        assert np.abs(result(file, pixels(height, width)) - expected).max() <= 1.001


@pytest.mark.parametrize(("middle", "left"), [("down", 1), ("even", 2)])
def test_an_odd_rest_beside_the_crop(middle: str, left: int, tmp_path: Path) -> None:
    file = edited(NET, tmp_path, fit="crop", resized=[12, 13], middle=middle, rescale=1.0)
    picture = pixels(12, 13)
    assert np.array_equal(result(file, picture), picture.transpose(0, 3, 1, 2)[..., left : left + 10])


@pytest.mark.parametrize("place", ["centre", "corner"])
def test_a_padded_picture(place: str, tmp_path: Path) -> None:
    file = edited(NET, tmp_path, fit="pad", fill=114, place=place, resize="nearest", rescale=1.0)
    for height, width in SIZES:
        scale = min(12 / height, 10 / width)
        size = [max(1, int(np.floor(side * scale + 0.5))) for side in (height, width)]
        expected = np.full((2, 3, 12, 10), 114.0)
        top, left = ((12 - size[0]) // 2, (10 - size[1]) // 2) if place == "centre" else (0, 0)
        expected[:, :, top : top + size[0], left : left + size[1]] = [
            resized(one, size[0], size[1], "nearest") for one in pixels(height, width)
        ]
        assert np.abs(result(file, pixels(height, width)) - expected).max() <= 1e-3


def test_a_grey_picture(tmp_path: Path) -> None:
    net = HEAD + "net (float[n,1,12,10] x) => (float[n,1,12,10] y) { y = Neg(x) }"
    file = edited(net, tmp_path, colour="grey", rescale=1.0)
    picture = pixels(12, 10)
    expected = [np.asarray(Image.fromarray(one).convert("L")) for one in picture]
    assert np.array_equal(result(file, picture)[:, 0], np.array(expected, np.float64))


KINDS = {
    "one channel": "net (float[n,1,12,10] x) => (float[n,1,12,10] y) { y = Neg(x) }",
    "four channels": "net (float[n,4,12,10] x) => (float[n,4,12,10] y) { y = Neg(x) }",
    "channels last": "net (float[n,12,10,3] x) => (float[n,12,10,3] y) { y = Neg(x) }",
    "float16": "net (float16[n,3,12,10] x) => (float16[n,3,12,10] y) { y = Neg(x) }",
    "float64": "net (double[n,3,12,10] x) => (double[n,3,12,10] y) { y = Neg(x) }",
    "uint8": "net (uint8[n,3,12,10] x) => (int32[n,3,12,10] y) { a = Cast<to = 6>(x) y = Neg(a) }",
    "a fixed batch": "net (float[2,3,12,10] x) => (float[2,3,12,10] y) { y = Neg(x) }",
    "several uses": "net (float[n,3,12,10] x) => (float[n,3,12,10] y) { a = Abs(x) b = Sub(a, x) y = Sub(b, a) }",
    "an output too": "net (float[n,3,12,10] x) => (float[n,3,12,10] y, float[n,3,12,10] x) { y = Neg(x) }",
    "in a branch": """net (float[n,3,12,10] x, bool k) => (float[n,3,12,10] y) {
        y = If<then_branch = t () => (float[n,3,12,10] u) { u = Neg(x) },
               else_branch = e () => (float[n,3,12,10] v) { v = Abs(x) }>(k)
    }""",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_input(kind: str, tmp_path: Path) -> None:
    text = HEAD + KINDS[kind]
    fields = {} if kind == "uint8" else {"mean": 0.5, "std": 0.25}
    file = edited(text, tmp_path, **fields)
    picture = pixels(31, 17, {"one channel": 1, "four channels": 4}.get(kind, 3))
    inputs = {"x": picture} | ({"k": np.array(True)} if kind == "in a branch" else {})
    found = -np.asarray(onnxsmith.run(file, inputs).outputs["y"]).astype(np.float64)
    levels = found if kind == "uint8" else (found * 0.25 + 0.5) * 255
    levels = levels.transpose(0, 3, 1, 2) if kind == "channels last" else levels
    expected = np.array([resized(one, 12, 10, "bilinear") for one in picture])
    assert np.abs(levels - expected).max() <= (1.2 if kind == "float16" else 1.001)
    with onnxsmith.edit(file, tmp_path / "back.onnx") as m:
        m.remove_processing()
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_symbolic_sizes_become_those_of_the_step_and_come_back(tmp_path: Path) -> None:
    model = from_text(FREE)
    model.metadata_props["onnxsmith.dim_ranges"] = '{"h": "8..64"}'
    onnxsmith.save(model, tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess("x", "12x10", name="photo")
    edited_ = onnxsmith.load(tmp_path / "e.onnx").graph
    assert str(edited_.inputs[0].shape) == "[n,picture_height,picture_width,3]"
    assert (edited_.inputs[0].name, edited_.inputs[0].dtype) == ("photo", ir.DataType.UINT8)
    assert str(edited_.outputs[0].shape) == "[n,3,12,10]"
    with onnxsmith.edit(tmp_path / "e.onnx", tmp_path / "back.onnx") as m:
        m.remove_processing("photo")
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


OLD = """<ir_version: 3, opset_import: ["": 18]>
g (float[?,3,?,?] x, float[1] k) => (float[?,3,?,?] y, float[?,3,?,?] z) <float[1] k = {2}>
{ y = Mul(x, k) z = Abs(y) }"""


def test_sizes_without_names_and_an_old_file_come_back(tmp_path: Path) -> None:
    """Before IR version 4, the constants of the processing would have to be inputs."""
    file = edited(OLD, tmp_path, size=6)
    assert [str(value.shape) for value in onnxsmith.load(file).graph.outputs] == ["[None,3,6,6]"] * 2
    with onnxsmith.edit(file, tmp_path / "back.onnx") as m:
        m.remove_processing()
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_steps_of_one_edit(tmp_path: Path) -> None:
    onnxsmith.save(from_text(FREE), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx", write_patch=tmp_path / "p.toml") as m:
        m.rename("x", to="images")
        m.preprocess("images", [12, 10], std=[0.5])
        m.rename("images", to="photo")
        m.remove_processing("photo")
        m.rename("images", to="x")
    assert (tmp_path / "e.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "f.onnx") as m:
        m.apply(tmp_path / "p.toml")
    assert (tmp_path / "f.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_the_report_names_the_reference(tmp_path: Path) -> None:
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.preprocess(resize="nearest")
        m.insert("Abs", after="y")  # a change on purpose: the output is not compared, the processing is
    assert m.result is not None
    (note,) = next(part for part in m.result.report.parts if isinstance(part, Edits)).notes
    assert note.startswith("preprocess x: compared with Pillow ")
    assert "on 18 pictures of 9 sizes (1x1, 12x10, " in note


WRONG_NODES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "antialias": ("Resize", {"antialias": 0, "exclude_outside": 0}, {}),
    "the border": ("Resize", {"exclude_outside": 0}, {}),
    "the cubic": ("Resize", {"cubic_coeff_a": -0.75}, {"resize": "bicubic"}),
    "the layout": ("Transpose", {"perm": [0, 3, 2, 1]}, {"size": [11, 11]}),
}


@pytest.mark.parametrize("name", WRONG_NODES)
def test_wrong_nodes_are_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    op, attributes, fields = WRONG_NODES[name]
    onnxsmith.save(from_text(FREE), tmp_path / "m.onnx")
    with refused("edit/processing-differs"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess(**{"size": [12, 10], **fields})
        m.set({"op": op}, attributes)
    assert not (tmp_path / "e.onnx").exists()


@pytest.mark.parametrize("numbers", [MEAN[::-1], [0.484, 0.456, 0.406]])
def test_a_wrong_mean_is_refused(numbers: list[float], tmp_path: Path, refused: Refused) -> None:
    """Also by less than a grey level: pictures of the right size are compared without a bound."""
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    with refused("edit/processing-differs"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess(mean=MEAN, std=STD)
        offset = m.nodes(op="Sub")[-1].inputs[1]
        m.constant(offset, (255 * np.array(numbers, np.float32)).reshape(3, 1, 1))
    assert not (tmp_path / "e.onnx").exists()


def test_a_wrong_model_behind_the_processing_is_refused(tmp_path: Path, refused: Refused) -> None:
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    with refused("verify/different"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess()
        next(iter(node for node in m.model.graph if node.op_type == "Neg")).op_type = "Abs"
    assert not (tmp_path / "e.onnx").exists()


def of(body: str, opset: int = 20) -> str:
    return HEAD.replace("20", str(opset)) + body


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no such input": (NET, {"input": "images"}, "edit/no-match"),
    "rank 2": (of("g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }"), {"input": "x"}, "edit/not-a-picture"),
    "no picture": (of("g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }"), {}, "edit/not-a-picture"),
    "five channels": (of("g (float[n,5,8,8] x) => (float[n,5,8,8] y) { y = Neg(x) }"), {}, "edit/not-a-picture"),
    "int8": (of("g (int8[n,3,8,8] x) => (int8[n,3,8,8] y) { y = Neg(x) }"), {}, "edit/not-a-picture"),
    "another size": (NET, {"size": [10, 12]}, "edit/not-a-picture"),
    "no size": (FREE, {}, "edit/not-a-picture"),
    "two means": (NET, {"mean": [0.5, 0.5]}, "edit/not-a-picture"),
    "a mean of whole numbers": (of(KINDS["uint8"]), {"mean": 0.5}, "edit/not-a-picture"),
    "bgr of one channel": (of(KINDS["one channel"]), {"colour": "bgr"}, "edit/not-a-picture"),
    "grey of three channels": (NET, {"colour": "grey"}, "edit/not-a-picture"),
    "opset 17": (of(NET.removeprefix(HEAD), 17), {}, "edit/old-opset"),
    "a name that clashes": (NET, {"name": "y"}, "edit/name-taken"),
    "an empty name": (NET, {"name": ""}, "edit/name-taken"),
    "a size of texts": (NET, {"size": "large"}, "edit/step-argument"),
    "a size of three": (NET, {"size": [1, 2, 3]}, "edit/step-argument"),
    "a fit": (NET, {"fit": "cut"}, "edit/step-argument"),
    "a crop that is larger": (NET, {"fit": "crop", "shorter": 11}, "edit/step-argument"),
    "a crop of fewer columns": (NET, {"fit": "crop", "resized": [12, 9]}, "edit/step-argument"),
    "two crops": (NET, {"fit": "crop", "resized": 20, "shorter": 20}, "edit/step-argument"),
    "shorter without crop": (NET, {"shorter": 20}, "edit/step-argument"),
    "std of zero": (NET, {"std": [1, 0, 1]}, "edit/step-argument"),
    "a mean that is no number": (NET, {"mean": float("nan")}, "edit/step-argument"),
    "a colour of text": (NET, {"colour": "red"}, "edit/step-argument"),
    "fill": (NET, {"fit": "pad", "fill": 256}, "edit/step-argument"),
    "rescale": (NET, {"rescale": 0.0}, "edit/step-argument"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_processed_is_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    text, fields, problem = WRONG[name]
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with refused(problem), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess(**fields)
    assert not (tmp_path / "e.onnx").exists()


def test_processed_inputs_are_not_processed_again(tmp_path: Path, refused: Refused) -> None:
    file = edited(NET, tmp_path)
    with refused("edit/not-a-picture") as refusal, onnxsmith.edit(file) as m:
        m.preprocess()
    assert "remove-processing" in refusal.problem.fix


def test_there_is_nothing_to_take_out(tmp_path: Path, refused: Refused) -> None:
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    with refused("edit/no-processing"), onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.remove_processing()
    file = edited(NET, tmp_path)
    with refused("edit/no-processing") as refusal, onnxsmith.edit(file) as m:
        m.remove_processing("y")
    assert "port = 'x'" in refusal.problem.fix


def test_processing_that_is_read_elsewhere_stays(tmp_path: Path, refused: Refused) -> None:
    file = edited(NET, tmp_path)
    with refused("edit/no-processing"), onnxsmith.edit(file, tmp_path / "b.onnx") as m:
        m.expose("preprocess_x.resize")
        m.remove_processing()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"input": {"name": 1}}', '{"input": {"name": "x", "dtype": "F"}}'])
def test_damaged_metadata_is_refused(text: str, tmp_path: Path, refused: Refused) -> None:
    file = edited(NET, tmp_path)
    model = onnxsmith.load(file)
    node = next(node for node in model.graph if "onnxsmith.processing.restores" in node.metadata_props)
    node.metadata_props["onnxsmith.processing.restores"] = text
    onnxsmith.save(model, file)
    with refused("edit/no-processing"), onnxsmith.edit(file) as m:
        m.remove_processing()


def test_two_pictures(tmp_path: Path) -> None:
    onnxsmith.save(from_text(HEAD + """net (float[n,3,8,8] a, float[m,1,h,w] b) => (float[n,3,8,8] y, float[m,1,h,w] z)
        { y = Neg(a) z = Neg(b) }"""), tmp_path / "m.onnx")  # fmt: skip
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.preprocess("a")
        m.preprocess("b", 9)
    shapes = [str(value.shape) for value in onnxsmith.load(tmp_path / "e.onnx").graph.inputs]
    assert shapes == ["[n,picture_height,picture_width,3]", "[m,picture_height_1,picture_width_1,1]"]
    with onnxsmith.edit(tmp_path / "e.onnx", tmp_path / "back.onnx") as m:
        m.remove_processing()
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
