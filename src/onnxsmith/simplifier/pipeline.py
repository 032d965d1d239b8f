"""The order of what is done, in one place. Rules have none: they run on a worklist until nothing changes.

First `BEFORE`. Then rounds: known sizes and constants (`folding.py`), constant branches (`branches.py`), `BEFORE` again
where there were any, the rules, `AFTER`. Rounds repeat, with shapes inferred afresh, until one changes nothing.
"""

from __future__ import annotations

from onnxsmith.passes.base import Pass
from onnxsmith.passes.common_subexpressions import CommonSubexpressions
from onnxsmith.passes.constants import Constants
from onnxsmith.passes.known_sizes import KnownSizes
from onnxsmith.passes.shared_initializers import SharedInitializers
from onnxsmith.passes.unused import Unused

BEFORE: tuple[tuple[str, Pass], ...] = (("", Constants()), ("", Unused()))
AFTER: tuple[tuple[str, Pass], ...] = (
    ("", Unused()),
    ("share/initializers", SharedInitializers()),
    ("share/nodes", CommonSubexpressions()),
    ("share/sizes", KnownSizes()),
    ("", Unused()),
)
"""An id is for those that a caller may choose or leave out; the others tidy up and always run."""
