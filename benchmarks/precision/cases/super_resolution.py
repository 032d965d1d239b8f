"""The super-resolution network of `examples/66_super_resolution`, on photographs that it was not trained on."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
from PIL import Image

from precision import training

NAME = "super_resolution"
METRIC = "psnr"
BETTER = "higher"
EXAMPLE = Path(__file__).parents[3] / "examples" / "66_super_resolution"
SIDE, SCALE, BORDER = 96, 3, 3
"""Pixels of a cut-out, how much smaller the network gets it, and pixels at the edge that PSNR leaves out."""
TEST = ("coffee", "china.jpg", "flower.jpg", "motorcycle_left")
CALIBRATION = ("astronaut", "chelsea", "rocket", "camera")
"""Names of `skimage.data`, and of pictures of `sklearn.datasets`. Those of the calibration are of the training set."""
MOST_CALIBRATION = 60


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"super_resolution_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(folder: Path) -> Path:
    """Export the trained network, with dynamic batch, height and width."""
    import torch

    path = folder / "super_resolution.onnx"
    if path.exists():
        return path
    dynamic = torch.export.Dim.DYNAMIC
    module, example = _example("model").build()
    return training.export(
        module, (example[0].repeat(2, 1, 1, 1),), path, ["x"], ({0: dynamic, 2: dynamic, 3: dynamic},)
    )


def _photograph(name: str) -> Image.Image:
    """The luminance plane, 8 bits."""
    import skimage
    import sklearn

    if name.endswith(".jpg"):
        path = Path(sklearn.__file__).parent / "datasets" / "images" / name
    else:
        found = sorted((Path(skimage.__file__).parent / "data").glob(f"{name}.*"))
        path = found[0]
    return Image.open(path).convert("L")


def _items(names: tuple[str, ...]) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    for name in names:
        whole = _photograph(name)
        for top in range(0, whole.height - SIDE + 1, SIDE):
            for left in range(0, whole.width - SIDE + 1, SIDE):
                large = whole.crop((left, top, left + SIDE, top + SIDE))
                small = large.resize((SIDE // SCALE, SIDE // SCALE), Image.Resampling.BICUBIC)
                feed = np.asarray(small, np.float32)[None, None] / 255
                yield {"x": feed}, _inside(np.asarray(large, np.float32) / 255)


def _inside(picture: np.ndarray) -> np.ndarray:
    return picture[BORDER:-BORDER, BORDER:-BORDER]


def samples() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """107 cut-outs of four photographs: a third of the size, and as they were."""
    return _items(TEST)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """60 cut-outs of other photographs, spread over them."""
    every = list(_items(CALIBRATION))
    step = len(every) / MOST_CALIBRATION
    return iter([every[int(index * step)] for index in range(MOST_CALIBRATION)])


def decode(outputs: dict[str, np.ndarray]) -> np.ndarray:
    """The enlarged picture in 0..1, in steps of 1/255, without its edge."""
    picture = outputs["output"][0, 0].astype(np.float32)
    return _inside(np.round(np.clip(picture, 0, 1) * 255) / 255)
