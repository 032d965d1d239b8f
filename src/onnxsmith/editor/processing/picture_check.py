"""Compares the nodes of a preprocessing with Pillow, on generated pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.processing import marks, pillow_reference, run_part
from onnxsmith.editor.processing.picture_rules import PictureRules
from onnxsmith.verification.inputs.generate import Feed

BOUND = 1
"""The grey levels by which a weighted mean may differ. Pillow rounds after each of its two passes, the nodes only once.
The first rounding moves a grey level by 0.5 at most. The second pass multiplies this by 1 (bilinear) or at most 1.25
(the sum of the absolute bicubic weights). The two last roundings add 0.5 each. The sum is below 2, so the whole numbers
differ by 0 or 1."""
_BATCH = 2
"""The pictures of a batch, if the model takes any number. A choice: a picture must not depend on the other one."""
_OPERATIONS = 4
"""The roundings between a grey level and the model's input: a difference, a quotient, a cast, and a constant's."""


@dataclass(frozen=True)
class PictureCheck:
    """Compares one preprocessing of an edited model, if it is still there after the last step."""

    work: Work
    name: str
    rules: PictureRules
    channels_first: bool

    def __call__(
        self,
        part: Verification,
        pair: tuple[Path | ir.Model, Path | ir.Model],
        settings: Verify,
        given: Sequence[Feed] = (),
    ) -> Verification:
        """Adds the largest difference to the notes of the edit.

        Raises:
            OnnxsmithError: `edit/processing-differs` if a picture differs by more than the bound.
        """
        held = next((one for one in marks.found(self.work.model) if one.name == self.name), None)
        if held is None or part.differs:
            return part
        picture, _ = marks.picture_of(self.work.model, held)
        end = held.end.outputs[0]
        inner = run_part.part(self.work.model, [picture], [end])
        batch = picture.shape[0] if picture.shape is not None else None
        count = batch if isinstance(batch, int) else _BATCH
        feeds = [{picture.name or "": one} for one in pillow_reference.pictures(self.rules, count, settings.seed)]
        worst, pictures, sizes = 0.0, 0, list[str]()
        for feed, (found,) in run_part.answers(inner, feeds, settings):
            pixels = feed[picture.name or ""]
            worst = max(worst, self._difference(pixels, found))
            pictures += len(pixels)
            sizes.append(f"{pixels.shape[1]}x{pixels.shape[2]}")
        said = (
            f"{self.name}: compared with {pillow_reference.name()} and numpy on {several(pictures, 'picture')} of "
            f"{several(len(sizes), 'size')} ({', '.join(sizes)}): the largest difference is {_levels(worst)}"
        )
        if self.rules.resize != "nearest":
            said += f"; {BOUND} and the rounding of the dtype are allowed where the size changes: "
            said += "Pillow rounds twice, and the nodes round once"
        self.work.notes.append(said)
        return part

    def _difference(self, pixels: pillow_reference.Pixels, found: object) -> float:
        """Returns the largest difference in grey levels of one batch.

        Raises:
            OnnxsmithError: `edit/processing-differs`.
        """
        rules, array = self.rules, np.asarray(found)
        size = f"{pixels.shape[1]}x{pixels.shape[2]}"
        expected = np.stack([pillow_reference.grey_levels(one, rules) for one in pixels])
        levels = array.astype(np.float64) if self.channels_first else array.astype(np.float64).transpose(0, 3, 1, 2)
        if levels.shape != expected.shape:
            raise self._differs(size, f"the graph gives the shape {list(levels.shape)}, not {list(expected.shape)}")
        rounding = 0.0
        if not np.issubdtype(array.dtype, np.integer):
            divisors, offsets = (np.array(one).reshape(-1, 1, 1) for one in (rules.divisors, rules.offsets))
            eps = float(ml_dtypes.finfo(array.dtype).eps)  # type: ignore[no-untyped-call]
            rounding = _OPERATIONS * eps * float(np.abs(levels * divisors).max() + np.abs(offsets).max())
            levels = levels * divisors + offsets
        bound = (0 if rules.is_exact_at(*pixels.shape[1:3]) else BOUND) + rounding
        apart = np.abs(levels - expected)
        worst = float(apart.max(initial=0.0))
        if not worst <= bound:
            at = tuple(int(one) for one in np.unravel_index(int(np.nanargmax(apart)), apart.shape))
            raise self._differs(
                size,
                f"channel {at[1]}, row {at[2]}, column {at[3]}: {levels[at]:.3f} in place of {expected[at]:.3f}; the "
                f"largest difference is {_levels(worst)}, {bound:.3g} allowed",
            )
        return worst

    def _differs(self, size: str, why: str) -> OnnxsmithError:
        return problem(
            "edit/processing-differs",
            f"the nodes of {self.name!r} do not process a picture as {pillow_reference.name()} does",
            where=f"a picture of {size}",
            why=why,
            fix="compare on onnxruntime, `--runtime onnxruntime`: other runtimes resize with other weights; nothing "
            "was written",
        )


def _levels(number: float) -> str:
    said = f"{number:.3g} grey level"
    return said if said.startswith("1 ") else f"{said}s"
