"""`Could not import module 'BertForSequenceClassification'`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_LAZY = re.compile(r"Could not import (?:module )?'?(\w+)'?|Failed to import transformers")
_VISION = re.compile(r"operator torchvision::\w+ does not exist|torchvision\.extension")


class BrokenImport(Cause):
    """transformers imports torchvision if it is installed, and reports a failure only as a class that is missing."""

    def read(self, text: str) -> Problem | None:
        lazy = _LAZY.search(text)
        if not lazy and not _VISION.search(text):
            return None
        named = lazy[1] if lazy and lazy[1] else "a class"
        return Problem(
            "export/broken-import",
            f"{named} could not be imported" if lazy else "torchvision does not fit the installed torch",
            why="most often torchvision and torch are of different releases: transformers imports torchvision if it is "
            "installed, and hides its error",
            fix="python -c 'import torchvision' shows whether that is the cause; pip install --upgrade torch "
            "torchvision fixes it, or pip uninstall torchvision if it is not used",
        )
