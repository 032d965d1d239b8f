"""Reads inputs from files: `.npz` by name, `.npy`, and images into the shape and dtype that a port takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.model.signature import Port
from onnxsmith.problem import problem

Array = npt.NDArray[Any]
IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an `.npz` by name, or of an `.npy` under the name "". Object arrays (pickles) are refused.

    Raises:
        OnnxsmithError: `input/unreadable` when it is no such file or holds pickled objects.
    """
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:
        raise problem(
            "input/unreadable",
            "the arrays cannot be read",
            where=str(path),
            why=f"{type(error).__name__}: {error}",
            fix="write it with numpy.savez(path, name=array, …); object arrays are refused, because reading them can run code",
        ) from error


def read_image(path: Path, port: Port) -> Array:
    """A picture as the port takes it: float in 0..1 or uint8 in 0..255, [batch, channels, height, width].

    One channel is luminance (BT.601 Y), three are red, green, blue. The channel axis is the one whose fixed size is 1 or
    3, the first such; a port of three dimensions has no batch.

    Raises:
        OnnxsmithError: `input/unreadable` when it is no picture; `input/not-an-image-port` when the port cannot take one.
    """
    from PIL import Image, UnidentifiedImageError

    shape = port.shape
    channel = next(
        (axis for axis, dim in enumerate(shape or ()) if dim in (1, 3) and axis >= len(shape or ()) - 3), None
    )
    if (
        shape is None
        or len(shape) not in (3, 4)
        or channel is None
        or port.dtype not in ("float", "float16", "double", "uint8")
    ):
        raise problem(
            "input/not-an-image-port",
            f"a picture cannot be given to {port.name!r}",
            where=f"{port.name}: {port}",
            why="it takes no float or uint8 tensor with a channel axis of size 1 or 3",
            fix="prepare the array yourself and pass it as .npz",
        )
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(
                picture.convert("YCbCr").getchannel(0) if shape[channel] == 1 else picture.convert("RGB")
            )
    except (UnidentifiedImageError, OSError) as error:
        raise problem("input/unreadable", "the picture cannot be read", where=str(path), why=str(error)) from error
    planes = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    if channel - (len(shape) - 3) == 2:
        planes = np.moveaxis(planes, 0, 2)
    batch = planes[None] if len(shape) == 4 else planes
    if port.dtype == "uint8":
        return np.ascontiguousarray(batch)
    return (batch / 255).astype({"float": np.float32, "float16": np.float16, "double": np.float64}[port.dtype])


def write_image(array: Array, path: Path) -> None:
    """Writes [.., 1 or 3, height, width] as a picture; floats are taken as 0..1 and clipped, as the format needs.

    Raises:
        OnnxsmithError: `output/not-an-image` when the array is not one picture.
    """
    from PIL import Image

    planes = array[0] if array.ndim == 4 and array.shape[0] == 1 else array
    if planes.ndim == 2:
        planes = planes[None]
    if planes.ndim != 3 or planes.shape[0] not in (1, 3):
        raise problem(
            "output/not-an-image",
            f"an output of shape {list(array.shape)} is not one picture",
            fix="write it as .npz, or take one picture of it",
        )
    pixels = (
        planes if planes.dtype == np.uint8 else np.rint(np.clip(planes.astype(np.float64), 0, 1) * 255).astype(np.uint8)
    )
    Image.fromarray(pixels[0] if pixels.shape[0] == 1 else np.moveaxis(pixels, 0, 2)).save(path)
