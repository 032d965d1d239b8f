"""`ExportedProgram.run_decompositions`, where it gets in the way of translations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

from torch._higher_order_ops import effects
from torch.export import ExportedProgram, _trace

_effects = effects.has_effects
_lift: Any = vars(_trace)["_materialize_and_lift_constants"]


def decompose(exported: ExportedProgram, table: Mapping[Any, Callable[..., Any]]) -> ExportedProgram:
    """The program with every operator of `table` written as its function there writes it.

    What raises or prints is kept by torch with a token that no runtime knows; not so where the table says what becomes
    of it. Tensors that a function of the table brings along are constants of the program.
    """

    def has_effects(op: Any) -> bool:
        return op not in table and _effects(op)

    def lifted(*args: Any, **kwargs: Any) -> Any:
        found = _lift(*args, **kwargs)
        exported.constants.update(found)  # torch has them in the graph and forgets to hand them on
        return found

    with (
        mock.patch.object(effects, "has_effects", has_effects),
        mock.patch.object(_trace, "_materialize_and_lift_constants", lifted),
    ):
        found: ExportedProgram = exported.run_decompositions(dict(table))
    return found
