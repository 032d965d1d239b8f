"""Finds the classes of transformers for a task, by `_model_mapping` of its auto classes, and the class of a cache's
layers.

Compared with transformers 5.23 and 5.24. If the first name is gone, no task has a class; the user can still export a
model by a factory of their own. If the second is gone, windows are traced with their branches.
"""

from __future__ import annotations

import sys
from typing import Any

REACHES = ("transformers:AutoModel._model_mapping", "transformers.cache_utils:DynamicSlidingWindowLayer.get_mask_sizes")


def sliding_layer() -> Any:
    """The layer of a cache that keeps a window of tokens; None if transformers is not imported, or has none."""
    layer = getattr(sys.modules.get("transformers.cache_utils"), "DynamicSlidingWindowLayer", None)
    return layer if hasattr(layer, "get_mask_sizes") else None


def classes(auto: Any, config: Any) -> tuple[type, ...]:
    """The classes that an auto class can make for a configuration; empty if it makes none."""
    mapping: Any = getattr(auto, "_model_mapping", None)
    if mapping is None or type(config) not in mapping:
        return ()
    found = mapping[type(config)]
    return found if isinstance(found, tuple) else (found,)
