"""`ExportedProgram.run_decompositions`, where it gets in the way of translations.

Compared with torch 2.11 to 2.13. Where a name is gone, torch decomposes in its own way: an operator that raises or
prints keeps its token, and the export of it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.seams.base import private, replaced_at

_EFFECTS = "torch._higher_order_ops.effects:has_effects"
_LIFT = "torch.export._trace:_materialize_and_lift_constants"
REACHES = (_EFFECTS, _LIFT)


def decompose(exported: ExportedProgram, table: Mapping[Any, Callable[..., Any]]) -> ExportedProgram:
    """The program with every operator of `table` written as its function there writes it.

    What raises or prints is kept by torch with a token that no runtime knows; not so where the table says what becomes
    of it. Tensors that a function of the table brings along are constants of the program.
    """
    effects, lift = private(_EFFECTS), private(_LIFT)

    def has_effects(op: Any) -> bool:
        return op not in table and effects(op)

    def lifted(*args: Any, **kwargs: Any) -> Any:
        found = lift(*args, **kwargs)
        exported.constants.update(found)  # torch has them in the graph and forgets to hand them on
        return found

    with ExitStack() as stack:
        stack.enter_context(replaced_at(_EFFECTS, has_effects))
        stack.enter_context(replaced_at(_LIFT, lifted))
        found: ExportedProgram = exported.run_decompositions(dict(table))
    return found
