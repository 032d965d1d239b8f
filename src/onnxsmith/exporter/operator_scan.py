"""Decides whether an operator without a translation ends an export: no other strategy would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.torch import translator
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module.translation_trial import Trial
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.translating import missing_operators
from onnxsmith.exporter.translating.missing_operators import UntranslatedError

_TABLES_NEWEST = 20
"""The newest opset of TorchScript's exporter (torch 2.13)."""


@dataclass
class OperatorScan:
    """Knows the operators without a translation (`lacking`): no other strategy would help.

    If a trace stops at a fixed axis, no code that keeps the axis dynamic would help either. To find the operators, it
    traces once more, so it waits for a second strategy to fail, unless only one is tried (`alone`)."""

    built: Built
    alone: bool
    lacking: tuple[str, ...] = ()
    _frozen: FrozenAxisError | None = None
    _is_done: bool = False

    def instead_of(self, error: OnnxsmithError, *, is_first: bool) -> OnnxsmithError:
        """Returns the error of the operators if there are any, otherwise the given one. `is_first` says whether it
        stopped the first strategy."""
        if isinstance(error, UntranslatedError):
            error = self._met(error, is_first=is_first)
        first, self._frozen = self._frozen, self._frozen or (error if isinstance(error, FrozenAxisError) else None)
        is_second = first is not None and error.problem.id in ("export/frozen-axis", "export/no-translation")
        if self._is_done or self._frozen is None or not (is_second or self.alone):
            return error
        self._is_done = True
        from onnxsmith.exporter.tracing import trace_diagnosis

        lacking = trace_diagnosis.untranslated_at_fixed_sizes(self.built.program, self.built.example)
        if not lacking:
            return error
        self.lacking = tuple(one.called or one.target for one in lacking)
        said, frozen = missing_operators.problem_of(lacking), self._frozen.problem
        later = f"after that, a fixed axis would stop the export: {frozen.what}" + (
            f" ({frozen.where})" if frozen.where else ""
        )
        return UntranslatedError(replace(said, why=f"{said.why}; {later}"), self.lacking)

    def _met(self, error: UntranslatedError, *, is_first: bool) -> OnnxsmithError:
        """Returns the error of operators that a strategy met. It is final if the first strategy met them, and
        TorchScript does not know them either: a later strategy changed the program or left translations out."""
        if not is_first or all(_is_in_tables(name) for name in error.called):
            return OnnxsmithError(error.problem)
        self.lacking, self._is_done = error.called, True
        return error

    def wrong(self, trials: Sequence[Trial]) -> None:
        """Notes the operators whose registered translation computes something else: what uses it differs as well."""
        targets = [one.target for one in trials if one.difference and isinstance(one.target, str)]
        if not all(map(_is_in_tables, targets)):
            self.lacking = tuple(targets)

    def rules_out(self, strategy: Strategy) -> bool:
        """Whether the strategy would meet an operator without a translation. TorchScript has a table of its own."""
        if not self.lacking or strategy.tried_after or strategy.takes_translations:
            return bool(self.lacking)
        return not all(map(_is_in_tables, self.lacking))


def _is_in_tables(operator: str) -> bool:
    """Whether TorchScript's exporter translates the operator (`lib::op`)."""
    return translator.has_symbolic(operator, _TABLES_NEWEST)
