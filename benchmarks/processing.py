"""`preprocess`: pictures as the graph processes them, compared with Pillow.

    python benchmarks/processing.py [--folder .bench-processing] [--only CASE …]

A case is a recipe: an image processor of transformers (its backend of Pillow), a preset of torchvision (its rule,
written with Pillow), or a letterbox of detectors. A classifier gets the processing in its graph. 50 generated
photographs of five kinds (smooth colours, noise, edges like those of text; 24 to 900 pixels a side) go through both.
Prints for each case the largest difference in grey levels, the share of grey levels that differ, and the answers of the
classifier that differ. A case is good if no difference exceeds 1 grey level and all answers are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring.cases import run

FOLDER = Path(__file__).parent.parent / ".bench-processing"
PHOTOGRAPHS = 50
KINDS = 5
GRID = 8
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HALF = {"mean": 0.5, "std": 0.5}
CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
Recipe = tuple[Any, dict[str, Any]]


def square(side: int) -> dict[str, int]:
    return {"height": side, "width": side}


def shortest(side: int) -> dict[str, int]:
    return {"shortest_edge": side}


TRANSFORMERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "vit": ("ViT", {}, {"size": 224, **HALF}),
    "swin": ("ViT", {"resample": 3, "image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]},
             {"size": 224, "resize": "bicubic", **IMAGENET}),
    "clip": ("CLIP", {}, {"size": 224, "fit": "crop", "resize": "bicubic", **CLIP}),
    "convnext": ("ConvNext", {"size": shortest(224), "image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]},
                 {"size": 224, "fit": "crop", "shorter": 256, "resize": "bicubic", **IMAGENET}),
    "convnext-384": ("ConvNext", {}, {"size": 384, "resize": "bicubic", **HALF}),
    "deit": ("DeiT", {"image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]},
             {"size": 224, "fit": "crop", "resized": 256, "resize": "bicubic", **IMAGENET}),
    "beit": ("Beit", {"size": square(256), "do_center_crop": True},
             {"size": 224, "fit": "crop", "resized": [256, 256], "resize": "bicubic", **HALF}),
    "mobilenet-v2": ("MobileNetV2", {}, {"size": 224, "fit": "crop", "shorter": 256, **HALF}),
    "efficientnet": ("EfficientNet", {"resample": 0, "size": square(224), "image_mean": IMAGENET["mean"],
                                      "image_std": [0.47853944, 0.4732864, 0.47434163]},
                     {"size": 224, "resize": "nearest", "mean": IMAGENET["mean"],
                      "std": [0.47853944**2, 0.4732864**2, 0.47434163**2]}),
    "segformer": ("Segformer", {}, {"size": 512, **IMAGENET}),
    "siglip": ("Siglip", {}, {"size": 224, "resize": "bicubic", **HALF}),
    "dpt": ("DPT", {}, {"size": 384, "resize": "bicubic", **HALF}),
    "poolformer": ("PoolFormer", {}, {"size": 224, "fit": "crop", "shorter": 248, "resize": "bicubic", **IMAGENET}),
    "mobilevit": ("MobileViT", {"size": shortest(288)},
                  {"size": 256, "fit": "crop", "shorter": 288, "resize": "bicubic", "colour": "bgr"}),
    "flava": ("Flava", {}, {"size": 224, "resize": "bicubic", **CLIP}),
}  # fmt: skip
"""The image processor, its settings, and the fields of the step."""


def torchvision(side: int, shorter: int, how: str) -> Recipe:
    """The rule of torchvision's presets: the shorter side is resized, the middle is cut out."""
    fields = {"size": side, "fit": "crop", "shorter": shorter, "resize": how, "middle": "even", **IMAGENET}

    def levels(picture: np.ndarray) -> np.ndarray:
        height, width = picture.shape[:2]
        new = (shorter, int(shorter * width / height)) if height <= width else (int(shorter * height / width), shorter)
        found = pillow(picture, new, how)
        top, left = (round((outer - side) / 2.0) for outer in new)
        return found[top : top + side, left : left + side]

    return levels, fields


def letterbox(side: int, fill: int, place: str, how: str, **numbers: Any) -> Recipe:
    """A picture that fits into a square, and grey beside it: in the middle as in YOLO, in a corner as in DETR."""
    fields = {"size": side, "fit": "pad", "fill": fill, "place": place, "resize": how, **numbers}

    def levels(picture: np.ndarray) -> np.ndarray:
        scale = side / max(picture.shape[:2])
        new = tuple(max(1, int(np.floor(one * scale + 0.5))) for one in picture.shape[:2])
        top, left = [(side - one) // 2 for one in new] if place == "centre" else (0, 0)
        found = np.full((side, side, 3), fill, np.uint8)
        found[top : top + new[0], left : left + new[1]] = pillow(picture, (new[0], new[1]), how)
        return found

    return levels, fields


OWN: dict[str, Recipe] = {
    "resnet-v1": torchvision(224, 256, "bilinear"),
    "resnet-v2": torchvision(224, 232, "bilinear"),
    "efficientnet-b0": torchvision(224, 256, "bicubic"),
    "yolo": letterbox(640, 114, "centre", "bilinear"),
    "detr": letterbox(512, 0, "corner", "bilinear", **IMAGENET),
    "rtmdet": letterbox(320, 114, "corner", "bicubic", colour="bgr", rescale=1.0, mean=[103.53, 116.28, 123.675],
                        std=[57.375, 57.12, 58.395]),
}  # fmt: skip
"""What gives the grey levels [height, width, 3] by Pillow, and the fields of the step."""
CASES = (*TRANSFORMERS, *OWN)
TARGET = len(CASES)


def pillow(picture: np.ndarray, size: tuple[int, int], how: str) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.fromarray(picture).resize(size[::-1], Image.Resampling[how.upper()]))


def photograph(seed: int) -> np.ndarray:
    """A picture of the kind `seed % KINDS`: the kind decides its colours and the direction of its waves."""
    random, kind = np.random.default_rng(seed), seed % KINDS
    height, width = (int(one) for one in np.exp(random.uniform(np.log(24), np.log(900), 2)))
    rows, columns = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j][..., None]
    phase = random.uniform(0, 6, 3)
    colours = np.random.default_rng(kind).uniform(60, 190, 3)
    found = (
        colours
        + 40 * np.sin((3 + kind) * rows + (8 - kind) * columns + phase)
        + random.normal(0, 12, (height, width, 3))
    )
    ink = np.zeros((height, width), bool)
    for _ in range(12):  # lines of letters: bars of one to three pixels, black or white
        top, left = int(random.integers(0, height)), int(random.integers(0, width))
        bars = random.random((1, 60)) < 0.5
        area = ink[top : top + int(random.integers(3, 16)), left : left + 60]
        area |= np.broadcast_to(bars[:, : area.shape[1]], area.shape)
    found[ink] = 255.0 * random.integers(0, 2)
    return np.clip(found, 0, 255).astype(np.uint8)


def reference(case: str) -> tuple[Callable[[np.ndarray], np.ndarray], dict[str, Any]]:
    """What gives the model's input [3, height, width], and the fields of the step."""
    if case in OWN:
        levels, fields = OWN[case]
        mean, std = (np.reshape(fields.get(name, usual), (-1, 1, 1)) for name, usual in (("mean", 0.0), ("std", 1.0)))

        def own(picture: np.ndarray) -> np.ndarray:
            found = levels(picture).transpose(2, 0, 1).astype(np.float64)
            found = found[::-1] if fields.get("colour") == "bgr" else found
            return (found * fields.get("rescale", 1 / 255) - mean) / std

        return own, fields
    import transformers
    from PIL import Image

    name, settings, fields = TRANSFORMERS[case]
    processor = getattr(transformers, f"{name}ImageProcessorPil")(**settings)

    def theirs(picture: np.ndarray) -> np.ndarray:
        return np.asarray(processor(Image.fromarray(picture), return_tensors="np")["pixel_values"][0])

    return theirs, fields


def classifier(file: Path, inputs: list[np.ndarray]) -> None:
    """Writes a classifier of the kinds: means of an 8x8 grid, and a linear layer that is fitted to the inputs."""
    import onnxsmith

    side = inputs[0].shape[-1] // GRID
    means = np.stack(
        [one[:, : side * GRID, : side * GRID].reshape(3, GRID, side, GRID, side).mean((2, 4)).ravel() for one in inputs]
    )
    means = np.hstack([means, np.ones((len(means), 1))])
    wanted = np.eye(KINDS)[np.arange(len(inputs)) % KINDS]
    weights = np.linalg.solve(means.T @ means + 0.1 * np.eye(means.shape[1]), means.T @ wanted)
    with onnxsmith.build(file, opset=20) as g:
        x = g.input("x", "float32", ["batch", *inputs[0].shape])
        pooled = g.Flatten(g.AveragePool(x, kernel_shape=[side, side], strides=[side, side]))
        g.output("scores", g.MatMul(pooled, weights[:-1].astype(np.float32)) + weights[-1].astype(np.float32))
        g.output("processed", g.Identity(x))


def one(case: str, folder: Path) -> str:
    """Puts the recipe into a classifier, and says how the photographs fared."""
    import onnxruntime as ort

    import onnxsmith

    folder.mkdir(exist_ok=True)
    theirs, fields = reference(case)
    pictures = [photograph(seed) for seed in range(PHOTOGRAPHS)]
    inputs = [theirs(picture).astype(np.float32) for picture in pictures]
    plain, file = folder / f"{case}.onnx", folder / f"{case}_processed.onnx"
    classifier(plain, inputs)
    with onnxsmith.edit(plain, file) as m:
        m.preprocess("x", **fields)
    before, after = (ort.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in (plain, file))
    std = np.reshape(fields.get("std", 1.0), (-1, 1, 1)) / fields.get("rescale", 1 / 255)
    worst, differing, wrong, right = 0.0, [], 0, 0
    for seed, (picture, input_) in enumerate(zip(pictures, inputs, strict=True)):
        expected = before.run(["scores"], {"x": input_[None]})[0][0]
        scores, processed = after.run(["scores", "processed"], {"x": picture[None]})
        apart = np.abs(processed[0].astype(np.float64) - input_) * std
        worst = max(worst, float(apart.max()))
        differing.append(float((apart > 0.5).mean()))
        wrong += int(np.argmax(scores[0]) != np.argmax(expected))
        right += int(np.argmax(expected) == seed % KINDS)
    good = "yes " if worst <= 1.001 and not wrong else "no  "
    return (
        f"{good} largest difference {worst:.3f} grey levels, {np.mean(differing):.1%} of them differ, {wrong} of "
        f"{PHOTOGRAPHS} answers differ ({right} are right)"
    )


if __name__ == "__main__":
    run(__file__, __doc__, one, CASES, FOLDER, TARGET, "are within 1 grey level of Pillow, with equal answers")
