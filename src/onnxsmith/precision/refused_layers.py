"""Finds the layers because of which a quantiser or a runtime refuses a model, by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxsmith.precision.delta_debugging import by_groups
from onnxsmith.precision.keep_list_search import Keep

TRIES = 16
"""Models that are made for it at most. A choice: enough for one layer of two hundred."""


def culprits(layers: Sequence[str], always: Keep, works: Callable[[Keep], bool], most: int = TRIES) -> Keep:
    """The layers that have to stay as they are so that the rest can be made and run. `works` makes the model in which
    the layers that it gets stay, and says whether it is accepted; without any change, with all of `layers`, it is. At
    most `most` models are made.

    Empty if more than half of the layers would have to stay: then it is not because of single layers.
    """
    order = [name for name in layers if name not in always]
    tries = 0
    seen: dict[Keep, bool] = {frozenset(): False, frozenset(order): True}

    def passes(keep: Keep) -> bool:
        nonlocal tries
        if keep not in seen:
            if tries >= most:
                return False
            tries += 1
            seen[keep] = works(always | keep)
        return seen[keep]

    found = frozenset(by_groups(order, passes) or ())
    return found if 2 * len(found) <= len(order) else frozenset()
