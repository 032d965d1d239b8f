"""Says which names of a report no node has, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.words import first_few
from onnxsmith.viewer.overlays.base import Names, Overlaying
from onnxsmith.viewer.report_origin import Origin

_FEW = 3
"""Names that a line shows. A choice: enough to find the kind."""
_MANY = 0.5
"""Share of absent names from which a report without a hash may be of another version of the model. A choice."""


@dataclass(frozen=True)
class Missing:
    """A line for the headline, and one for the page, which shows some of the names."""

    short: str
    long: str


def missing(report: str, title: str, names: Names, how: Overlaying, found: Origin) -> Iterator[Missing]:
    """Yields lines for each kind of name without a node. `found` says which model the report is of."""
    for absent, here, why in (
        (names.stored, "", "inputs and stored tensors"),
        (names.absent, " here", _why(names, how, found)),
    ):
        if absent:
            counted = f"{report}: {len(absent):,} of {names.asked:,} names in {title} {_have(absent)} no node{here}"
            shown = first_few(dict.fromkeys(absent), _FEW)
            yield Missing(f"{counted} ({why})", f"{counted}: {shown}: {why}")


def _have(absent: Sequence[str]) -> str:
    return "has" if len(absent) == 1 else "have"


def _why(names: Names, how: Overlaying, found: Origin) -> str:
    if found in (Origin.OTHER, Origin.WEIGHTS):
        return f"the report is {found.value}"
    if how.made:
        return how.made
    if found is Origin.SAME:
        return "the command named parts of a copy of the model"
    if len(names.absent) > _MANY * names.asked:
        return "the report may be of another version of the model"
    return "the report has no hash that says which version of the model it is of"
