"""Upscale a picture threefold: luminance by the ONNX network, colour by bicubic interpolation.

    python upscale.py superres.onnx photo.png -o upscaled.png [--evaluate [--show compared.png]]

With `--evaluate` the picture given is the truth: it is shrunk threefold first, and what comes back is
measured against it. The command exits with 1 if the network is not at least 0.5 dB better than bicubic. `--show`
saves a picture of the input, bicubic, the network and its difference from the truth beside each other.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps
from side_by_side import AMPLIFIED, difference, interesting, side_by_side

import onnxsmith

SCALE = 3
LEAST_GAIN = 0.5  # dB over bicubic
EIGHT_BIT = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")

Plane = npt.NDArray[np.uint8]  # one channel, [height, width], 0..255


def read_picture(path: Path) -> Image.Image:
    """Open a picture, turned upright as its EXIF says, as mode "L" (greyscale) or "RGB" (all else).

    Transparent pictures are laid on white. Raises ValueError for more than 8 bits a channel, which Pillow
    would clip.
    """
    with Image.open(path) as opened:
        if opened.mode not in EIGHT_BIT:
            raise ValueError(f"{path}: mode {opened.mode} is not 8 bits a channel")
        image = ImageOps.exif_transpose(opened)
    grey = image.mode in ("1", "L", "LA")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if grey else "RGB")


def crop(image: Image.Image) -> Image.Image:
    """Cut the right and lower edge so that both sides are multiples of 3."""
    width, height = image.size
    return image.crop((0, 0, width - width % SCALE, height - height % SCALE))


def shrink(image: Image.Image) -> Image.Image:
    """Shrink a picture whose sides are multiples of 3 to a third, by bicubic interpolation."""
    width, height = image.size
    return image.resize((width // SCALE, height // SCALE), Image.Resampling.BICUBIC)


def enlarge(image: Image.Image) -> Image.Image:
    """Enlarge a picture threefold by bicubic interpolation."""
    width, height = image.size
    return image.resize((width * SCALE, height * SCALE), Image.Resampling.BICUBIC)


def luma(image: Image.Image) -> Image.Image:
    """Return the luminance plane, mode "L": BT.601 Y in full range 0..255, as Pillow's YCbCr has it."""
    return image if image.mode == "L" else image.convert("YCbCr").getchannel("Y")


def upscale_luma(model: Path, plane: Plane) -> Plane:
    """Run the network on one luminance plane: uint8 [height, width] -> uint8 [3 * height, 3 * width]."""
    x = (plane.astype(np.float32) / 255.0)[np.newaxis, np.newaxis]
    (y,) = onnxsmith.run(model, {"x": x}).outputs.values()
    expected = (1, 1, plane.shape[0] * SCALE, plane.shape[1] * SCALE)
    if y.shape != expected:
        raise ValueError(f"{model} returned shape {y.shape}, expected {expected}")
    upscaled: Plane = np.rint(np.clip(y[0, 0], 0.0, 1.0) * 255.0).astype(np.uint8)
    return upscaled


def merge(plane: Plane, small: Image.Image) -> Image.Image:
    """Join an upscaled luminance plane, uint8 [3 * height, 3 * width], with the colour of `small`.

    `small`, "L" or "RGB" of height x width, has its Cb and Cr enlarged by bicubic interpolation; the picture
    returned has its mode.
    """
    y = Image.fromarray(plane)
    if small.mode == "L":
        return y
    _, cb, cr = small.convert("YCbCr").split()
    return Image.merge("YCbCr", (y, enlarge(cb), enlarge(cr))).convert("RGB")


def psnr(plane: Plane, truth: Plane, border: int = SCALE) -> float:
    """Return the peak signal-to-noise ratio in dB of two planes, uint8 [height, width], peak 255.

    `border` pixels on each side are left out. Equal planes give infinity.
    """
    if plane.shape != truth.shape:
        raise ValueError(f"shapes differ: {plane.shape} and {truth.shape}")
    inner = (slice(border, -border or None),) * 2
    error = plane[inner].astype(np.float64) - truth[inner].astype(np.float64)
    mse = float(np.mean(error**2))
    return float("inf") if mse == 0.0 else 10.0 * float(np.log10(255.0**2 / mse))


def main() -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(description="Upscale a picture threefold with an ONNX network.")
    parser.add_argument("model", type=Path, help="the exported network, with dynamic height and width")
    parser.add_argument("picture", type=Path, help="the picture to upscale")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where to save the result")
    parser.add_argument("--evaluate", action="store_true", help="shrink the picture first; print the PSNR")
    parser.add_argument("--show", type=Path, help="with --evaluate: where to save the comparison, as a picture")
    args = parser.parse_args()
    if args.show and not args.evaluate:
        parser.error("--show needs --evaluate")

    truth = read_picture(args.picture)
    if args.evaluate:
        truth = crop(truth)
    small = shrink(truth) if args.evaluate else truth
    plane = upscale_luma(args.model, np.asarray(luma(small)))
    upscaled = merge(plane, small)
    upscaled.save(args.output)
    print(f"{args.output}: {small.width}x{small.height} -> {plane.shape[1]}x{plane.shape[0]}")
    if not args.evaluate:
        return 0

    target = np.asarray(luma(truth))
    simple = np.asarray(enlarge(luma(small)))
    network, bicubic = psnr(plane, target), psnr(simple, target)
    enough = network - bicubic >= LEAST_GAIN
    print(f"luminance PSNR: network {network:.2f} dB, bicubic {bicubic:.2f} dB")
    print(f"gain: {network - bicubic:+.2f} dB ({'at least' if enough else 'LESS THAN'} {LEAST_GAIN} dB)")
    if args.show:
        pictures = [
            ("input", f"{small.width}x{small.height}", small.resize(truth.size, Image.Resampling.NEAREST)),
            ("bicubic", f"{bicubic:.2f} dB", enlarge(small)),
            ("network", f"{network:.2f} dB, {network - bicubic:+.2f} dB", upscaled),
            ("off by", f"network - original, times {AMPLIFIED}", difference(plane, target)),
        ]
        side_by_side(pictures, interesting(simple, plane)).save(args.show)
        print(f"{args.show}: input, bicubic, network and difference")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
