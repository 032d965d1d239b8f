"""Reads inputs from files: `.npz` by name, `.npy`, and images in the shape and dtype of the input."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onnxsmith.base import user_files
from onnxsmith.base.folders import replacing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import memory_limit
from onnxsmith.base.words import pasted
from onnxsmith.graph.files import array_files
from onnxsmith.graph.files.load import near_files
from onnxsmith.graph.files.save import disk_problems, unwritten
from onnxsmith.graph.structure.signature import Dim, Port, Signature
from onnxsmith.runtimes import _feeds

if TYPE_CHECKING:
    from PIL import Image

Array = npt.NDArray[Any]
WRITTEN_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}
IMAGES = {*WRITTEN_IMAGES, ".gif", ".ppm", ".pgm"}
"""Lists the ends of the names of images. A GIF is not written: it holds 256 colours."""
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Lists the formats that Pillow decodes itself. It recognises a format by the content, whatever the name of the file,
and starts another program for some, such as Ghostscript for PostScript."""
_DTYPES = {"float": np.float32, "float16": np.float16, "double": np.float64, "uint8": np.uint8}
"""Maps the dtypes of inputs that take an image to those of numpy."""
_TURNED = (5, 6, 7, 8)
"""Lists the orientations of the Exif standard (CIPA DC-008) that exchange width and height."""
_DECODING = 20
"""The bytes for each pixel while an image is decoded: three images of 4 bytes a pixel (as it is, with and without
transparency), and twice the 3 bytes of its array; measured: 18."""


def read_npz(path: Path) -> dict[str, Array]:
    """Returns the arrays of an `.npz` by name, or of an `.npy` under the name "". Refuses object arrays (pickles).

    Raises:
        OnnxsmithError: `input/unreadable` if the file is neither `.npz` nor `.npy`, or holds pickled objects;
            `input/too-large` if this process has no memory for the arrays.
    """
    try:
        return array_files.named(array_files.ArrayFile(path).arrays())
    except (*array_files.DAMAGED, OSError) as error:
        raise problem(
            "input/unreadable",
            "the arrays cannot be read",
            where=str(path),
            why=f"{type(error).__name__}: {error}" if path.exists() else "there is no such file",
            fix=_rewriting(path)
            if path.is_file()
            else near_files(path) or f"check the path; relative paths start at {Path.cwd()}",
        ) from error


def _rewriting(path: Path) -> str:
    """Says how to write an unreadable file again. `numpy.savez` adds `.npz` to every other ending."""
    numbers = "an array of numbers: an array of objects is refused, because reading objects can run code"
    if path.suffix == ".npy":
        return f"write it again with numpy.save({str(path)!r}, array), {numbers}"
    if path.suffix == ".npz":
        return f"write it again with numpy.savez({str(path)!r}, name=array, …), each {numbers}"
    other = str(path.with_suffix(".npz"))
    return f"write numpy.savez({other!r}, name=array, …), each {numbers}, and give {other}"


def write_npz(path: Path, values: Mapping[str, Any]) -> None:
    """Writes arrays by name; `read_npz` returns them bit for bit.

    Raises:
        OnnxsmithError: `output/not-an-array` for a sequence, an absent optional or strings.
    """
    arrays: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    left = [name for name in values if name not in arrays or arrays[name].dtype.kind == "O"]
    if left:
        raise problem(
            "output/not-an-array",
            f"{left[0]!r} cannot be written to an .npz",
            why="the value is a sequence, an absent optional or strings",
            fix=f'run the model in Python and read the value there: onnxsmith.run(…).outputs["{left[0]}"]',
        )
    with disk_problems(path), replacing(path) as aside, aside.open("wb") as file:
        array_files.write_npz(file, arrays)


def read_image(path: Path, port: Port) -> Array:
    """Reads an image in the input's layout: float in 0..1 or uint8 in 0..255, [batch, channels, height, width].

    One channel is luminance (BT.601 Y), three are red, green, blue. The channel axis is the first or the last of the
    last three axes, whichever has the fixed size 1 or 3. If both have such a size, the channel axis is the first. An
    input of three dimensions has no batch.

    Raises:
        OnnxsmithError: `input/unreadable` if it is no image of 8 bits a channel, in one of `_FORMATS`;
            `input/not-an-image-port` if the input does not fit an image; `run/wrong-shape` if the input fixes another
            height or width; `input/too-large` if this process has no memory for the image. Only its header was read
            then.
    """
    from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

    shape, channel = _image_axes(port, path)
    try:
        with (
            user_files.opened(path) as file,
            _without_warnings(Image.DecompressionBombWarning),
            Image.open(file, formats=_FORMATS) as picture,
        ):
            if picture.mode.startswith(("I", "F")):
                raise ValueError(f"mode {picture.mode} has more than 8 bits a channel; they would be lost")
            if getattr(picture, "n_frames", 1) > 1:
                raise ValueError("the file has several frames or pages, and an input takes one picture")
            # Pillow decodes a PNG without Exif data to look for it behind the pixels.
            exif = picture.getexif() if "exif" in picture.info or picture.format == "TIFF" else {}
            is_turned = exif.get(ExifTags.Base.Orientation, 1) in _TURNED
            _refuse_size(path, picture.size[::-1] if is_turned else picture.size, port, channel)
            upright = ImageOps.exif_transpose(picture)
            _refuse_size(path, upright.size, port, channel)
            pixels = np.asarray(_luminance(upright) if shape[channel] == 1 else _colours(upright))
    except OnnxsmithError:
        raise
    except Exception as error:
        raise problem(
            "input/unreadable",
            "the image cannot be read",
            where=str(path),
            why=f"it is in none of the formats {', '.join(_FORMATS)}"
            if isinstance(error, UnidentifiedImageError)
            else f"{type(error).__name__}: {error}",
            fix="save it as an 8-bit PNG or JPEG" if path.is_file() else "correct the path: there is no such file",
        ) from error
    planes = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    if channel - (len(shape) - 3) == 2:
        planes = np.moveaxis(planes, 0, 2)
    batch = planes[None] if len(shape) == 4 else planes
    if port.dtype == "uint8":
        return np.ascontiguousarray(batch)
    values = np.empty(batch.shape, _DTYPES[port.dtype])
    np.divide(batch, 255, out=values, dtype=np.float64, casting="unsafe")  # no copy of all values in float64
    return values


def _image_axes(port: Port, path: Path) -> tuple[tuple[Dim, ...], int]:
    """Returns the shape of an input that takes an image, and its channel axis."""
    shape = port.shape
    ends = () if shape is None else (len(shape) - 3, len(shape) - 1)
    channel = next((axis for axis in ends if axis >= 0 and shape is not None and shape[axis] in (1, 3)), None)
    if shape is None or len(shape) not in (3, 4) or channel is None or port.dtype not in _DTYPES:
        raise problem(
            "input/not-an-image-port",
            f"input {port.name!r} cannot take an image",
            where=f"{port.name}: {port}",
            why="the input is not a float or uint8 tensor with a channel axis of size 1 or 3",
            fix=f"prepare the array yourself, numpy.save({str(path.with_suffix('.npy'))!r}, array), and write "
            f"{pasted(port.name)}={pasted(path.with_suffix('.npy'))} in place of the image",
        )
    return shape, channel


@contextmanager
def _without_warnings(category: type[Warning]) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


def _refuse_size(path: Path, size: tuple[int, int], port: Port, channel: int) -> None:
    """Refuses an image, by the width and height in its header, that does not fit the input or the memory."""
    shape = port.shape or ()
    sizes: list[Dim] = [size[1], size[0]]
    sizes.insert(channel - (len(shape) - 3), shape[channel])
    given = tuple(dim for dim in (1, *sizes)[-len(shape) :] if isinstance(dim, int))
    if any(isinstance(dim, int) and dim != one for dim, one in zip(shape[-3:], given[-3:], strict=True)):
        feeds = {port.name: np.broadcast_to(np.zeros((), _DTYPES[port.dtype]), given)}  # takes no memory
        _feeds.check(feeds, Signature((port,), ()))
    room, pixels = memory_limit.HERE.room(), size[0] * size[1]
    needed = pixels * max(_DECODING, 3 + 3 * np.dtype(_DTYPES[port.dtype]).itemsize)
    if room is not None and needed > room:
        raise problem(
            "input/too-large",
            f"the image needs {needed:,} bytes while it is read; this process may take {room:,} more",
            where=str(path),
            why=f"it has {size[0]:,} by {size[1]:,} pixels, in a file of {path.stat().st_size:,} bytes. The limit is "
            "three quarters of the free memory, or what `ulimit -v` leaves",
            fix="give a smaller image; or end other programs, raise the limit that `ulimit -v` shows, or use a machine "
            "with more memory",
        )


def _luminance(picture: Image.Image) -> Image.Image:
    if picture.mode in ("1", "L", "LA"):
        return picture.convert("L")  # through RGB, one grey in twelve would come out one step darker
    return _colours(picture).convert("YCbCr").getchannel(0)


def _colours(picture: Image.Image) -> Image.Image:
    if picture.mode == "RGB":
        return picture
    return picture.convert("RGBA").convert("RGB")  # directly to RGB, a palette with transparency gives a warning


def write_image(array: Array, path: Path) -> None:
    """Writes [.., 1 or 3, height, width] as an image. Floats are read as 0..1, integers as 0..255, and clipped.

    Raises:
        OnnxsmithError: `output/not-an-image` if the array is not one image; `save/failed` if the disk or the file
            format refuses it.
    """
    from PIL import Image

    planes = array[0] if array.ndim == 4 and array.shape[0] == 1 else array
    if planes.ndim == 2:
        planes = planes[None]
    if planes.ndim != 3 or planes.shape[0] not in (1, 3):
        raise problem(
            "output/not-an-image",
            f"an output of shape {list(array.shape)} is not one image",
            fix=f"write -o {pasted(path.with_suffix('.npz'))}, or select one image of the output",
        )
    pixels = _bytes(planes, path)
    picture = Image.fromarray(pixels[0] if pixels.shape[0] == 1 else np.ascontiguousarray(np.moveaxis(pixels, 0, 2)))
    try:
        with replacing(path) as aside:
            picture.save(aside)
    except OSError as error:
        raise unwritten(path, error, "the image could not be written") from error
    except ValueError as error:
        raise problem(
            "save/failed",
            "the image could not be written",
            where=str(path),
            why=str(error),
            fix=f"write -o {pasted(path.with_suffix('.png'))}",
        ) from error


def _bytes(planes: Array, path: Path) -> npt.NDArray[np.uint8]:
    """Converts to bytes: integers count as 0..255, floats and bools as 0..1; values outside are clipped."""
    if planes.dtype.kind in "iu":
        return np.clip(planes, 0, 255).astype(np.uint8)
    wide = planes.astype(np.float64)
    if not np.isfinite(wide).all():
        raise problem(
            "output/not-an-image",
            "the output has values that are not finite",
            fix=f"write -o {pasted(path.with_suffix('.npz'))} and look for the values that are not finite",
        )
    return np.rint(np.clip(wide, 0, 1) * 255).astype(np.uint8)
