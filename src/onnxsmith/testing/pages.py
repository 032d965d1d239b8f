"""Where the page of a failure goes. The pytest plugin sets it; this module imports nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

current: Callable[[], Path | None] | None = None
"""Returns the file for the page of a failure of the running test; None for no page."""
