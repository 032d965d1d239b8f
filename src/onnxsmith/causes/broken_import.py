"""`Could not import module 'BertForSequenceClassification'`."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_LAZY = re.compile(r"Could not import (?:module )?'?(\w+)'?|Failed to import transformers")
_VISION = re.compile(r"operator torchvision::\w+ does not exist|torchvision\.extension")


class BrokenImport(Cause):
    """transformers imports torchvision when it is there, and says of its failure only which class it was for."""

    def read(self, text: str) -> Problem | None:
        lazy = _LAZY.search(text)
        if not lazy and not _VISION.search(text):
            return None
        named = lazy[1] if lazy and lazy[1] else "a class"
        return Problem(
            "export/broken-import",
            f"{named} could not be imported" if lazy else "torchvision does not fit the installed torch",
            why="most often torchvision is of another release than torch: transformers imports it where it is there, "
            "and hides its error",
            fix="python -c 'import torchvision' says whether it is so; pip install --upgrade torch torchvision helps, "
            "pip uninstall torchvision does where it is not used",
        )
