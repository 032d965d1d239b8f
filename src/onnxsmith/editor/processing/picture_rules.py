"""Says how a picture becomes the input of a model: sizes, colours, and the numbers of the normalisation."""

from __future__ import annotations

from dataclasses import dataclass

FITS = ("stretch", "crop", "pad")
RESIZES = ("bilinear", "bicubic", "nearest")
COLOURS = ("rgb", "bgr", "grey")
PLACES = ("centre", "corner")
MIDDLES = ("down", "even")


@dataclass(frozen=True)
class PictureRules:
    """Holds the rules. Sizes are (height, width).

    The picture is resized to `resized_to`: None keeps the aspect, by `fit`. With "crop" the shorter side becomes
    `shorter`; with "pad" the picture becomes as large as fits into `size`. Then the middle is cut out ("crop"), or the
    rest is filled with the grey level `fill` ("pad"). A grey level p of 0..255 becomes `(p * rescale - mean) / std`,
    for each of the model's `channels`.
    """

    size: tuple[int, int]
    channels: int
    fit: str = "stretch"
    shorter: int | None = None
    resized_to: tuple[int, int] | None = None
    resize: str = "bilinear"
    colour: str = "rgb"
    rescale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    fill: int = 0
    place: str = "centre"
    middle: str = "down"

    @property
    def picture_channels(self) -> int:
        """The channels of the picture: 3 if the graph makes it grey, else those of the model."""
        return 3 if self.colour == "grey" else self.channels

    @property
    def offsets(self) -> tuple[float, ...]:
        """The grey level of each channel that becomes 0."""
        return tuple(mean / self.rescale for mean in _for_each(self.mean, self.channels))

    @property
    def divisors(self) -> tuple[float, ...]:
        """The grey levels of each channel between 0 and 1 of the result."""
        return tuple(std / self.rescale for std in _for_each(self.std, self.channels))

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Returns the size of a picture after the resize.

        The longer side of "crop" is rounded down, as in torchvision and transformers. The other side of "pad" is
        rounded to the nearest number, as in YOLO's letterbox, and is at least 1.
        """
        if self.resized_to is not None:
            return self.resized_to
        if self.shorter is not None:
            least = min(height, width)
            return height * self.shorter // least, width * self.shorter // least
        rows, columns = self.size
        fitting = (2 * height * columns + width) // (2 * width), (2 * width * rows + height) // (2 * height)
        return min(rows, max(1, fitting[0])), min(columns, max(1, fitting[1]))

    def start(self, outer: int, inner: int) -> int:
        """Returns where the middle of `inner` pixels begins among `outer` pixels. An odd rest is rounded down, as in
        transformers, or with the middle "even" to the even number, as Python's `round` in torchvision."""
        rest = outer - inner
        return rest // 2 + (rest % 2 * (rest // 2 % 2) if self.middle == "even" else 0)

    def is_exact_at(self, height: int, width: int) -> bool:
        """Whether no grey level is a mean of several at this size of the picture."""
        return self.resize == "nearest" or self.resized(height, width) == (height, width)


def _for_each(numbers: tuple[float, ...], channels: int) -> tuple[float, ...]:
    return numbers * channels if len(numbers) == 1 else numbers
