"""Arrays and pictures are read as the model takes them, and written back."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

from onnxsmith.base.system import memory_limit
from onnxsmith.graph.structure.signature import Dim, Port, Signature
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.input_files import read_image, read_npz, write_image
from tests.conftest import Refused

# Arrays


def test_arrays_come_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.float32(5))
    found = read_npz(tmp_path / "a.npz")
    assert {name: value.tolist() for name, value in found.items()} == {"x": [0, 1, 2], "y": 5}


def test_a_single_array_has_no_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    assert read_npz(tmp_path / "a.npy")[""].tolist() == [0, 1, 2]


def test_texts_are_arrays_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array(["a", "ß"]))
    assert read_npz(tmp_path / "a.npz")["x"].tolist() == ["a", "ß"]


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_pickled_objects_are_refused(tmp_path: Path, name: str, refused: Refused) -> None:
    array = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "a.npz", x=array)
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with refused("input/unreadable"):
        read_npz(tmp_path / name)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut off", b"\x93NUMPY", b"garbage" * 9, b"\x80\x04."])
def test_what_holds_no_arrays_is_refused(tmp_path: Path, data: bytes, refused: Refused) -> None:
    (tmp_path / "a.npz").write_bytes(data)
    with refused("input/unreadable"):
        read_npz(tmp_path / "a.npz")


def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path, refused: Refused) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(100))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[: len(whole) // 2])
    with refused("input/unreadable"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["nobody.npz", "."])
def test_no_file_is_unreadable(tmp_path: Path, name: str, refused: Refused) -> None:
    with refused("input/unreadable"):
        read_npz(tmp_path / name)


# Pictures

WIDE, HIGH = 4, 2
"""No square, so that a swap of height and width is seen."""


def port(*shape: Dim, dtype: str = "float") -> Port:
    return Port("x", dtype, shape)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Red on the left, blue on the right."""
    pixels = np.zeros((HIGH, WIDE, 3), np.uint8)
    pixels[:, : WIDE // 2, 0] = 255
    pixels[:, WIDE // 2 :, 2] = 255
    Image.fromarray(pixels).save(tmp_path / "p.png")
    return tmp_path / "p.png"


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (("n", 3, "h", "w"), (1, 3, HIGH, WIDE)),
        ((1, 3, HIGH, WIDE), (1, 3, HIGH, WIDE)),
        ((3, "h", "w"), (3, HIGH, WIDE)),
        (("n", "h", "w", 3), (1, HIGH, WIDE, 3)),
        (("h", "w", 3), (HIGH, WIDE, 3)),
        (("n", 1, "h", "w"), (1, 1, HIGH, WIDE)),
        (("h", "w", 1), (HIGH, WIDE, 1)),
    ],
)
def test_a_picture_takes_the_ports_layout(picture: Path, shape: tuple[Dim, ...], wanted: tuple[int, ...]) -> None:
    assert read_image(picture, port(*shape)).shape == wanted


@pytest.mark.parametrize(
    ("shape", "axis", "size"), [((1, 1, "h", 3), 3, WIDE), ((224, 224, 3), 0, HIGH), ((4, 3, "h", 224), 3, WIDE)]
)
def test_a_picture_of_another_size_is_not_decoded(
    picture: Path, refused: Refused, shape: tuple[Dim, ...], axis: int, size: int
) -> None:
    picture.write_bytes(picture.read_bytes()[:50])  # its header
    with refused("run/wrong-shape") as refusal:
        read_image(picture, port(*shape))
    assert f"axis {axis} is {size}" in refusal.problem.what or shape[0] == 4


def test_a_picture_that_needs_too_much_memory_is_not_decoded(
    picture: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture.write_bytes(picture.read_bytes()[:50])
    monkeypatch.setattr(type(memory_limit.HERE), "room", lambda _: 10 * HIGH * WIDE)
    with refused("input/too-large") as refusal:
        read_image(picture, port(1, 3, "h", "w"))
    assert f"{WIDE} by {HIGH} pixels" in refusal.problem.why


def test_a_large_picture_takes_few_copies_and_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak is that of arrays: 3 bytes a pixel as read, 12 as float, and none in float64."""
    side = 1500
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", side * side - 1)
    Image.new("RGB", (side, side)).save(tmp_path / "p.png")
    tracemalloc.start()
    try:
        read_image(tmp_path / "p.png", port(1, 3, "h", "w"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * side * side


@pytest.mark.parametrize(
    "start", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"\xd7\xcd\xc6\x9a" + bytes(90)]
)
def test_a_format_that_another_program_decodes_is_refused(tmp_path: Path, refused: Refused, start: bytes) -> None:
    (tmp_path / "p.png").write_bytes(start + b"%%EOF\n")
    with refused("input/unreadable") as refusal:
        read_image(tmp_path / "p.png", port(1, 3, "h", "w"))
    assert "PNG, JPEG, BMP, GIF, WEBP, TIFF, PPM" in refusal.problem.why


def test_colours_stand_where_they_belong(picture: Path) -> None:
    red, green, blue = read_image(picture, port(1, 3, "h", "w"))[0]
    assert red.tolist() == [[1, 1, 0, 0]] * HIGH
    assert green.any() == False  # noqa: E712 — a numpy bool
    assert blue.tolist() == [[0, 0, 1, 1]] * HIGH


@pytest.mark.parametrize(
    ("dtype", "numpy", "most"),
    [("float", np.float32, 1), ("float16", np.float16, 1), ("double", np.float64, 1), ("uint8", np.uint8, 255)],
)
def test_values_take_the_ports_dtype_and_range(picture: Path, dtype: str, numpy: type, most: int) -> None:
    found = read_image(picture, port(1, 3, "h", "w", dtype=dtype))
    assert (found.dtype, found.max(), found.min()) == (numpy, most, 0)


def test_one_channel_is_luminance(picture: Path) -> None:
    found = read_image(picture, port(1, 1, "h", "w", dtype="uint8"))[0, 0, 0]
    assert found.tolist() == [76, 76, 29, 29]  # 0.299 and 0.114 of 255, BT.601


@pytest.mark.parametrize(
    ("mode", "colour", "wanted"),
    [
        ("L", 100, (100, 100, 100)),
        ("1", 1, (255, 255, 255)),
        ("LA", (100, 7), (100, 100, 100)),
        ("RGB", (10, 20, 30), (10, 20, 30)),
        ("RGBA", (10, 20, 30, 0), (10, 20, 30)),
        ("CMYK", (0, 255, 255, 0), (255, 0, 0)),
        ("YCbCr", (100, 128, 128), (100, 100, 100)),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_of_every_mode_are_read(
    tmp_path: Path, refused: Refused, mode: str, colour: Any, wanted: tuple[int, ...], channels: int
) -> None:
    suffix = "tif" if mode in ("CMYK", "YCbCr") else "png"
    Image.new(mode, (WIDE, HIGH), colour).save(tmp_path / f"p.{suffix}")
    if mode == "YCbCr" and int(PIL.__version__.partition(".")[0]) < 13:  # it cannot read what it writes
        with refused("input/unreadable"):
            read_image(tmp_path / f"p.{suffix}", port(1, channels, "h", "w", dtype="uint8"))
        return
    found = read_image(tmp_path / f"p.{suffix}", port(1, channels, "h", "w", dtype="uint8"))
    luminance = round(0.299 * wanted[0] + 0.587 * wanted[1] + 0.114 * wanted[2])
    assert found[0, :, 0, 0].tolist() == (list(wanted) if channels == 3 else [luminance])


@pytest.mark.parametrize("transparent", [False, True])
def test_a_palette_is_turned_into_colours(tmp_path: Path, transparent: bool) -> None:
    picture = Image.new("RGB", (WIDE, HIGH), (255, 0, 0)).quantize(4)
    if transparent:
        picture.info["transparency"] = bytes([0, 255, 128, 255])
    picture.save(tmp_path / "p.png")
    assert read_image(tmp_path / "p.png", port(1, 3, "h", "w", dtype="uint8"))[0, :, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_more_than_8_bits_are_not_cut_off(tmp_path: Path, mode: str, refused: Refused) -> None:
    Image.new(mode, (WIDE, HIGH), 3).save(tmp_path / "p.tif")
    with refused("input/unreadable"):
        read_image(tmp_path / "p.tif", port(1, 3, "h", "w"))


@pytest.mark.parametrize("suffix", ["gif", "png", "tif", "webp"])
def test_a_file_with_several_pictures_is_refused(tmp_path: Path, suffix: str, refused: Refused) -> None:
    first, second = (Image.new("RGB", (WIDE, HIGH), colour) for colour in ("red", "blue"))
    first.save(tmp_path / f"p.{suffix}", save_all=True, append_images=[second])
    with refused("input/unreadable"):
        read_image(tmp_path / f"p.{suffix}", Port("x", "uint8", (3, HIGH, WIDE)))


@pytest.mark.parametrize("suffix", ["gif", "ppm"])
def test_other_promised_formats(tmp_path: Path, suffix: str) -> None:
    Image.new("RGB", (WIDE, HIGH), "red").save(tmp_path / f"p.{suffix}")
    port = Port("x", "uint8", (3, HIGH, WIDE))
    (feed,) = user_inputs.inputs([f"x={tmp_path / f'p.{suffix}'}"], Signature((port,), ()))
    assert feed.values["x"][:, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    "taker",
    [
        port("n", "c", "h", "w"),
        port(1, 4, "h", "w"),
        port("h", 3, "w"),
        port(3),
        port(1, 1, 3, "h", "w"),
        port(1, 3, "h", "w", dtype="int64"),
        port(1, 3, "h", "w", dtype="bfloat16"),
        Port("x", "float", None),
    ],
    ids=str,
)
def test_an_input_that_takes_no_picture_is_told(picture: Path, taker: Port, refused: Refused) -> None:
    with refused("input/not-an-image-port"):
        read_image(picture, taker)


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x89PNG\r\n\x1a\n", b"GIF89a"])
def test_what_is_no_picture_is_refused(tmp_path: Path, data: bytes, refused: Refused) -> None:
    (tmp_path / "p.png").write_bytes(data)
    with refused("input/unreadable"):
        read_image(tmp_path / "p.png", port(1, 3, "h", "w"))


def test_a_picture_that_was_cut_off_is_refused(tmp_path: Path, refused: Refused) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "p.png")
    whole = (tmp_path / "p.png").read_bytes()
    (tmp_path / "p.png").write_bytes(whole[: len(whole) // 2])
    with refused("input/unreadable"):
        read_image(tmp_path / "p.png", port(1, 3, "h", "w"))


# Writing pictures


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("batch", [False, True])
def test_a_picture_that_was_read_is_written_back(picture: Path, channels: int, batch: bool) -> None:
    array = read_image(picture, port(1, channels, "h", "w"))
    write_image(array if batch else array[0], picture.with_name("q.png"))
    np.testing.assert_array_equal(read_image(picture.with_name("q.png"), port(1, channels, "h", "w")), array)


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([[-1.0, 0.0], [0.5, 7.0]]), [[0, 0], [128, 255]]),
        (np.array([[0, 255], [300, -3]]), [[0, 255], [255, 0]]),
        (np.array([[0, 1], [2, 255]], np.uint8), [[0, 1], [2, 255]]),
        (np.array([[False, True]]), [[0, 255]]),
        (np.array([[0.25]], np.float16), [[64]]),
    ],
)
def test_values_outside_are_clipped(tmp_path: Path, array: np.ndarray, wanted: list[list[int]]) -> None:
    write_image(array, tmp_path / "p.png")
    assert np.asarray(Image.open(tmp_path / "p.png")).tolist() == wanted


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 4, 4), (3,), (1, 1, 3, 4, 4), ()], ids=str)
def test_an_array_that_is_not_one_picture_is_refused(tmp_path: Path, shape: tuple[int, ...], refused: Refused) -> None:
    with refused("output/not-an-image"):
        write_image(np.zeros(shape), tmp_path / "p.png")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(tmp_path: Path, value: float, refused: Refused) -> None:
    with refused("output/not-an-image"):
        write_image(np.full((2, 2), value), tmp_path / "p.png")


@pytest.mark.parametrize(
    ("name", "id_"), [("p.unknown", "save/failed"), ("nobody/p.png", "save/no-folder"), ("p", "save/failed")]
)
def test_a_path_that_takes_no_picture_is_told(tmp_path: Path, name: str, id_: str, refused: Refused) -> None:
    with refused(id_):
        write_image(np.zeros((2, 2)), tmp_path / name)


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_photograph_stands_upright(tmp_path: Path, orientation: int) -> None:
    """A camera stores the pixels as its sensor reads them, and how to turn them in Exif."""
    picture = Image.new("RGB", (WIDE, HIGH), "black")
    picture.paste("red", (0, 0, WIDE // 2, HIGH // 2))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "p.png", exif=exif)
    wanted = np.asarray(picture.rotate({1: 0, 3: 180, 6: -90, 8: 90}[orientation], expand=True))
    found = read_image(tmp_path / "p.png", port(1, 3, *wanted.shape[:2], dtype="uint8"))
    assert np.array_equal(np.moveaxis(found[0], 0, 2), wanted)


def test_an_array_of_another_byte_order(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3, dtype=">f4"))
    found = read_npz(tmp_path / "a.npy")[""]
    assert found.dtype == np.float32
    assert found.dtype.isnative
    assert found.tolist() == [0, 1, 2]


def test_a_shape_of_truth_values_is_refused(tmp_path: Path, refused: Refused) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1, 4), np.float32))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data.replace(b"(1, 4), }   ", b"(True, 4), }"))
    with refused("input/unreadable"):
        read_npz(tmp_path / "a.npy")
