"""Which classes of transformers there are for a task: `_model_mapping` of its auto classes.

Compared with transformers 5.23. Where the name is gone, no kind of model is known for any task; a model is then given
as a target of the user's own.
"""

from __future__ import annotations

from typing import Any

REACHES = ("transformers:AutoModel._model_mapping",)


def classes(auto: Any, config: Any) -> tuple[type, ...]:
    """The classes that an auto class makes for a configuration; none where it makes none."""
    mapping: Any = getattr(auto, "_model_mapping", None)
    if mapping is None or type(config) not in mapping:
        return ()
    found = mapping[type(config)]
    return found if isinstance(found, tuple) else (found,)
