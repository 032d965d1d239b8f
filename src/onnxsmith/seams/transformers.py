"""Finds the classes of transformers for a task, by `_model_mapping` of its auto classes.

Compared with transformers 5.23. If the name is gone, no task has a class; the user can still export a model by a
factory of their own.
"""

from __future__ import annotations

from typing import Any

REACHES = ("transformers:AutoModel._model_mapping",)


def classes(auto: Any, config: Any) -> tuple[type, ...]:
    """The classes that an auto class can make for a configuration; empty if it makes none."""
    mapping: Any = getattr(auto, "_model_mapping", None)
    if mapping is None or type(config) not in mapping:
        return ()
    found = mapping[type(config)]
    return found if isinstance(found, tuple) else (found,)
