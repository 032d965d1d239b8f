"""Pictures of a level: SVG that any viewer takes, PNG, and names of any characters."""

from __future__ import annotations

import io
import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import onnx_ir as ir
import pytest
from PIL import Image

from onnxsmith.viewer.inspection.inspect import inspect
from onnxsmith.viewer.picture.drawing import draw
from onnxsmith.viewer.picture.picture_elements import Box, Picture, Text, cut, width
from onnxsmith.viewer.picture.png import to_png
from onnxsmith.viewer.picture.svg import to_svg
from onnxsmith.viewer.scene import Overlay, Room
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD, chain, scene_of
from tests.viewer.test_view import hostile, scene_in

SVG = "{http://www.w3.org/2000/svg}"


def drawn(model: object, number: int = 0) -> Picture:
    found = scene_of(model)  # type: ignore[arg-type]
    return draw(found.scene, found.scene.rooms[number])


def texts(picture: Picture) -> list[str]:
    root = ET.fromstring(to_svg(picture))
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_what_is_drawn() -> None:
    ports = "g (float[batch,4] x) => (float[batch,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}>"
    text = f"{ports} {{ t = MatMul(x, w)\n y = Softmax<axis = 1>(t) }}"
    found = texts(drawn(HEAD + text))
    assert set(found) == {
        "x", "float32[batch, 4]", "MatMul", "[4, 2]", "float32[batch, 2]", "Softmax", "axis 1", "y",
    }  # fmt: skip


def test_boxes_do_not_overlap_and_lie_inside() -> None:
    picture = drawn(chain(["Relu", "Abs", "Neg", "Sin"] * 5))
    for one in picture.boxes:
        assert one.x >= 0
        assert one.x + one.width <= picture.width
        assert one.y + one.height <= picture.height
    rows: dict[float, list[Box]] = {}
    for one in picture.boxes:
        rows.setdefault(one.y, []).append(one)
    for row in rows.values():
        row.sort(key=lambda one: one.x)
        assert all(a.x + a.width < b.x for a, b in itertools.pairwise(row))


def test_texts_fit_their_boxes() -> None:
    long = "com.example.an.extremely.long.domain::AnOperatorWithAnExtremelyLongName"
    assert width(cut(long, 13, 200), 13) <= 200
    assert cut("short", 13, 200) == "short"
    assert cut(long, 13, 200).startswith("com.")
    assert cut(long, 13, 200).endswith("Name")
    assert cut("", 13, 0) == ""


def test_names_do_nothing_in_an_svg() -> None:
    svg = to_svg(drawn(hostile()))
    root = ET.fromstring(svg)
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        "svg", "title", "defs", "marker", "path", "rect", "text",
    }  # fmt: skip
    assert "<img" not in svg
    assert not any(name.startswith("on") or "href" in name for one in root.iter() for name in one.attrib)


@pytest.mark.parametrize("name", ["\x00\x08", "\ud800", "\uffff", "日本語", "a\nb", "🙂"])
def test_names_of_any_characters(name: str) -> None:
    picture = Picture(name, 100, 50, texts=[Text(50, 20, name, 12, "#000000")])
    ET.fromstring(to_svg(picture).encode())
    assert to_png(picture)[0].startswith(b"\x89PNG")


def test_files(tmp_path: Path) -> None:
    model = chain([f"{op}@net.a" for op in ("Relu", "Abs", "Neg")] + ["Exp@net.b"])
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    result = view(model, svg=svg, png=png, module="net.a")
    assert result.path is None
    assert "Relu" in svg.read_text(encoding="utf-8")
    assert "Exp" not in svg.read_text(encoding="utf-8")
    with Image.open(png) as image:
        assert image.width > 200
        colours = image.convert("RGB").getcolors(1 << 20)
    assert colours is not None
    assert max(colours)[1] == (255, 255, 255), "a light ground"
    assert len(colours) > 20


def test_a_large_picture_is_made_smaller() -> None:
    data, note = to_png(Picture("", 40_000, 10_000))
    with Image.open(io.BytesIO(data)) as image:
        assert image.width * image.height < 61e6
    assert note == "the picture was reduced to 39% of its size"


def test_the_second_of_two_models_is_drawn(tmp_path: Path) -> None:
    view(chain(["Relu"]), chain(["Abs"]), svg=tmp_path / "a.svg")
    assert "Abs" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_an_empty_room() -> None:
    model = scene_of(chain(["Relu"])).scene
    assert texts(draw(model, Room("empty", "module", "empty", 0))) == ["no nodes"]


def test_a_picture_has_the_colours_of_a_report() -> None:
    found = scene_of(HEAD + "g (float[N] x) => (float[N] y) { [a] t = Relu(x)\n[b] u = Abs(t)\n[c] y = Neg(u) }").scene
    times = Overlay("time", 0, "s", "log", [], "high", [0, 1], [1e-6, 1e-3], ["", ""], "onnxsmith bench: r.json")
    picture = draw(found, found.rooms[0], times)
    fills = [box.fill for box in picture.boxes if box.radius == 7.0]
    assert fills[:2] == ["#fff7e6", "#f0783c"], "light and strong"
    assert fills[2] == "#ffffff", "no figure"
    assert [one for one in texts(picture) if one][-3:] == ["time, s (onnxsmith bench: r.json)", "1e-06", "0.001"]
    classes = Overlay("verdict", 0, "", "classes", ["ran", "refused"], "high", [0, 1], [0, 1], ["", ""], "check")
    assert texts(draw(found, found.rooms[0], classes))[-3:] == ["verdict (check)", "ran", "refused"]
    odd = Overlay("magnitude", 0, "", "log", [], "high", [0, 1], ["nan", 2.0], ["", ""], "dump")
    assert texts(draw(found, found.rooms[0], odd))[-2:] == ["2", "nan"]


def test_the_picture_of_view_has_them_too(tmp_path: Path) -> None:
    model = chain(["Relu", "Abs"])
    model.graph.inputs[0].shape = ir.Shape([4])
    view(model, reports=[inspect(model, costs=True)], svg=tmp_path / "p.svg")
    assert "activations, bytes (onnxsmith inspect" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_module_without_a_picture_is_where_the_page_opens(tmp_path: Path) -> None:
    model = chain([f"{op}@net.{name}" for name in "ab" for op in ("Relu", "Abs", "Neg")])
    result = view(model, output=tmp_path / "m.html", module="net.a")
    assert scene_in(result.page)["start"] == "#net.a"
    assert f"the level net.a is at {tmp_path / 'm.html'}#net.a" in result.report.notes
    assert scene_in(view(model).page)["start"] == ""
