"""The order of passes, in one place. Rules have none: they run on a worklist until nothing changes."""

from __future__ import annotations

from onnxsmith.passes.base import Pass
from onnxsmith.passes.constants import Constants
from onnxsmith.passes.unused import Unused

BEFORE_RULES: tuple[Pass, ...] = (Constants(), Unused())
AFTER_RULES: tuple[Pass, ...] = (Unused(),)
