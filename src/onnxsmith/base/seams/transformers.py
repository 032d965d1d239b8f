"""Finds the classes of transformers for a task, by `_model_mapping` of its auto classes, and the class of a cache's
layers.

Compared with transformers 5.23 and 5.24. If the first name is gone, no task has a class; users can still export a model
by their own factory. If the second is gone, the branches of sliding-window caches are traced as they are.
"""

from __future__ import annotations

import sys
from typing import Any

REACHES = ("transformers:AutoModel._model_mapping", "transformers.cache_utils:DynamicSlidingWindowLayer.get_mask_sizes")


def sliding_layer() -> Any:
    """Returns the class of cache layers that keep a window of tokens; None if transformers is not imported, or has no
    such class."""
    layer = getattr(sys.modules.get("transformers.cache_utils"), "DynamicSlidingWindowLayer", None)
    return layer if hasattr(layer, "get_mask_sizes") else None


def classes(auto: Any, config: Any) -> tuple[type, ...]:
    """Returns the classes that an auto class can make for a configuration; empty if there are none."""
    mapping: Any = getattr(auto, "_model_mapping", None)
    if mapping is None or type(config) not in mapping:
        return ()
    found = mapping[type(config)]
    return found if isinstance(found, tuple) else (found,)
