"""Defines the base class of rules. A rule is a local rewrite that keeps the model's meaning, or says why it does not
apply.

A rule is one class, in the file of its subject. Its folder and its name are its id: `ConvBatchnorm` in
`optimizer/rules/fuse` is `fuse/conv-batchnorm`. A rule alone in its file is called as the file. The docstring of a rule
is its page: the rewrite and its reason, the numbered refusals, and `Before:` and `After:` as ONNX text, which are its
first test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.graph.structure import walk

Blamed = ir.Node | ir.Value | str
"""Stands for the subject of a refusal: a node, a value, or the name of a node or value."""


class Exactness(IntEnum):
    """Says how far a rewrite may change a number: by no bit; in bits, but not in value (-0.0 may become 0.0, infinity
    stays); by rounding.

    A rewrite that reassociates may turn infinity into a number or the reverse, if an intermediate number leaves the
    range of its dtype; the rule's page says when. Such a rewrite is refused before a quantiser, unless the caller
    allows it."""

    BITWISE = 0
    VALUE = 1
    REASSOCIATES = 2


@dataclass(frozen=True)
class NoMatch:
    """Refuses a match: the pattern is there, but the rewrite is not allowed. `where` is the value or node that prevents
    it, or its name. If it is empty, the anchor prevents it."""

    reason: str
    where: Blamed = ""

    def place(self, anchor: ir.Node) -> str:
        """Returns the name of the node or value that prevents the rewrite."""
        if isinstance(self.where, ir.Node):
            return walk.node_label(self.where)
        name = self.where.name if isinstance(self.where, ir.Value) else self.where
        return name or walk.node_label(anchor)


@dataclass(frozen=True)
class TooOld(NoMatch):
    """Refuses a match at an opset below `since`, which introduced the operator that the rule would make."""

    since: int = 0


@dataclass(frozen=True)
class Match:
    """A place where a rule applies: the anchor `node`, the `nodes` that the rewrite makes redundant, and the rule's
    data in `found`.

    New nodes go before the anchor, or before the node `before` if the rewrite replaces results that are read above the
    anchor. `scaled` are intermediate values whose content changes, or differs in their replacement: they get a new
    name. `grows` are the bytes of constants that the model stores twice after the rewrite.
    """

    node: ir.Node
    nodes: tuple[ir.Node, ...]
    found: Mapping[str, Any] = field(default_factory=dict)
    before: ir.Node | None = None
    scaled: tuple[ir.Value, ...] = ()
    grows: int = 0


class Rule(ABC):
    """Makes one rewrite. Rules have no state."""

    anchor: ClassVar[tuple[str, ...]]
    """Lists the operator types (of ONNX's own domain) at which the rule starts."""
    exactness: ClassVar[Exactness]
    domain: ClassVar[str] = ""
    """Names the domain of the operator that the rule makes, if that is a runtime's own. Such a rule runs only on
    request."""
    target: ClassVar[str] = ""
    """Names the target on which the rewrite was measured faster, if the rewrite does not save nodes. The rule then runs
    for that target only, or if it is named."""
    makes: ClassVar[str] = ""
    """Names the standard operator that the rule makes, if a runtime without a kernel would unfold it into more nodes
    than before. The rule then needs a kernel in the runtime that verifies. Gelu, HardSwish and Mish unfold into the
    nodes that they replace, so they need none."""
    slower: ClassVar[str] = ""
    """Names the measurement because of which the rule runs only if it is named, not with the other rules of its
    domain."""

    @abstractmethod
    def match(self, node: ir.Node) -> Match | NoMatch | None:
        """Returns a match at `node`; None if the pattern is not there; `NoMatch` if the pattern is there but must not
        be rewritten."""

    @abstractmethod
    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value | Mapping[ir.Value, ir.Value]:
        """Returns the replacement of the anchor's first output: a value built on `tape`, or an existing value. Returns
        a mapping to replace several results, of the anchor or of other nodes of the match."""


def is_sole_use(value: ir.Value) -> bool:
    """Whether exactly one node reads the value, once, and it is not a graph output."""
    return len(value.uses()) == 1 and not value.is_graph_output()
