"""Compares what a page looks like with a small picture that was taken before.

Small, so that single letters do not count, while a colour, a place or a size does. After a wanted change, on a machine
whose sans-serif font is DejaVu: `VIEWER_PICTURES=write python -m pytest tests/viewer/browser/test_pictures.py`."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SMALL = (192, 120)
SAMPLE = 328.3
"""Width of the sample text in the font of the pictures, DejaVu Sans, in pixels."""
SAME_FONT = (2.0, 0.02)
"""Most mean difference, in levels of 255, and share of points that differ by more than 32. Same machine: 0 and 0."""
OTHER_FONT = (10.0, 0.1)
"""The same where other fonts set the words. Measured with Liberation Sans: 7.7 and 0.08; other colours: 22 and 0.16."""


def tolerance(page: Any) -> tuple[float, float]:
    width = page.evaluate("""() => {
      const context = document.createElement("canvas").getContext("2d");
      context.font = "20px system-ui, sans-serif";
      return context.measureText("LayerNormalization 0123456789").width;
    }""")
    return SAME_FONT if abs(width - SAMPLE) < 1 else OTHER_FONT


def check(page: Any, path: Path, *, write: bool = True) -> None:
    """Fails if the page does not look as the picture at `path`."""
    shot = Image.open(io.BytesIO(page.screenshot(caret="hide"))).convert("RGB")
    small = shot.resize(SMALL, Image.Resampling.BOX)
    if write and os.environ.get("VIEWER_PICTURES") == "write":
        path.parent.mkdir(exist_ok=True)
        small.save(path, optimize=True)
    away = np.abs(np.asarray(small, np.int16) - np.asarray(Image.open(path).convert("RGB"), np.int16)).max(axis=2)
    mean, share = tolerance(page)
    assert away.mean() <= mean
    assert (away > 32).mean() <= share
