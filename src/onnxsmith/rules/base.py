"""What a rule is: a local rewrite that keeps the model's meaning, or says why it does not apply.

A rule is one file. Its path is its id (`rules/fuse/conv_batchnorm.py` is `fuse/conv-batchnorm`), its docstring is its
page: what and why, the cases it refuses by number, and `Before:` and `After:` as ONNX text, which are its first test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

import onnx_ir as ir


class Exactness(IntEnum):
    """How far a rewrite may move a number: not a bit; not in value (-0.0 may become 0.0, infinity stays); by rounding.

    Where a number in the middle leaves its dtype's range, one that reassociates may give a number for what was infinite
    or the other way round; a rule's page says where. Before a quantiser it is refused, unless it was asked for.
    """

    BITWISE = 0
    VALUE = 1
    REASSOCIATES = 2


@dataclass(frozen=True)
class NoMatch:
    """Why a rule that looked applicable is not: a reason, and the value or node that stands in the way."""

    reason: str
    where: str = ""


@dataclass(frozen=True)
class Match:
    """A place where a rule applies: the anchor, every node that the rewrite makes superfluous, what `match` found.

    What the rewrite builds is put before the anchor, or before the node `before`, where the rewrite replaces results
    that are read earlier than the anchor stands. `scaled` are values in the middle that stand for something else
    afterwards, themselves or in what replaces them: they are called something else then, too.
    """

    node: ir.Node
    nodes: tuple[ir.Node, ...]
    found: Mapping[str, Any] = field(default_factory=dict)
    before: ir.Node | None = None
    scaled: tuple[ir.Value, ...] = ()


class Rule(ABC):
    """One rewrite; stateless."""

    anchor: ClassVar[tuple[str, ...]]
    """Operator types (of ONNX's own domain) that it starts from."""
    exactness: ClassVar[Exactness]

    @abstractmethod
    def match(self, node: ir.Node) -> Match | NoMatch | None:
        """A match at `node`; None when it is not the pattern, `NoMatch` when it is and may not be rewritten."""

    @abstractmethod
    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value | Mapping[ir.Value, ir.Value]:
        """What replaces the anchor's first output, built on `tape`; an existing value is fine. A mapping says it for
        several results, of the anchor or of other nodes of the match."""


def is_sole_use(value: ir.Value) -> bool:
    """Whether exactly one node reads the value, once, and no graph gives it out."""
    return len(value.uses()) == 1 and not value.is_graph_output()
