"""Runs `ExportedProgram.run_decompositions` without two behaviours that prevent translations.

Compared with torch 2.11 to 2.14. If a name is gone, torch keeps operators that raise or print, with their effect
tokens, and the export of such a program is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.base.seams.base import private, replaced_at

_EFFECTS = "torch._higher_order_ops.effects:has_effects"
_LIFT = "torch.export._trace:_materialize_and_lift_constants"
REACHES = (_EFFECTS, _LIFT)


def decompose(exported: ExportedProgram, table: Mapping[Any, Callable[..., Any]]) -> ExportedProgram:
    """Decomposes every operator of `table` by its function in the table.

    Unlike torch, also decomposes operators that raise or print: torch keeps them with an effect token, which no runtime
    knows. Tensors that a function of the table creates become constants of the program.
    """
    effects, lift = private(_EFFECTS), private(_LIFT)

    def has_effects(op: Any) -> bool:
        return op not in table and effects(op)

    def lifted(*args: Any, **kwargs: Any) -> Any:
        found = lift(*args, **kwargs)
        exported.constants.update(found)  # torch uses them in the graph but does not add them to the constants
        return found

    with ExitStack() as stack:
        stack.enter_context(replaced_at(_EFFECTS, has_effects))
        stack.enter_context(replaced_at(_LIFT, lifted))
        found: ExportedProgram = exported.run_decompositions(dict(table))
    return found
