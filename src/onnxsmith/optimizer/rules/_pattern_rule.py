"""Defines the base class of rules that are written as a pattern and its replacement; `docs/patterns.md` has the
notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.optimizer.rules._patterns import read_elsewhere, too_old
from onnxsmith.optimizer.rules.base import Match, NoMatch, Rule

if TYPE_CHECKING:  # the patterns are read when a rule meets its first node
    from onnxsmith.graph.patterns.match import Match as Found
    from onnxsmith.optimizer.rules._pattern_text import Text

Answer = Mapping[str, Any] | NoMatch | None
"""Gives values for names in the replacement, in addition to those of the match; arrays become constants. None means no
match."""


class PatternRule(Rule):
    """Replaces each match of `pattern` that `check` allows by `replacement`. Both are ONNX text; `replacement` reads
    variables and results of the pattern by name. All nodes of a match are in one graph."""

    pattern: ClassVar[str]
    replacement: ClassVar[str]
    since: ClassVar[int] = 0
    """Names the opset below which the replacement cannot be written: a match is refused there."""
    form: ClassVar[str] = ""
    """Names the form of the replacement's operator that opset `since` introduced, if earlier opsets have another
    form."""
    sole_reader: ClassVar[bool] = False
    """Whether a match is refused if another node reads a result that the replacement does not keep."""

    def check(self, found: Found) -> Answer:
        """Returns further values for the replacement if the match may be replaced."""
        return {}

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        text = self._text
        if not text.producers.may_be_those_of(node):
            return None
        from onnxsmith.graph.patterns.pattern_search import every_match

        for found in every_match(text.plan, node):
            more = self.check(found)
            if isinstance(more, NoMatch):
                return more
            if more is not None:
                every = tuple(one for one in found.taken if not text.keeps & found.names(one))
                refusal = read_elsewhere(every) if self.sole_reader else None
                if self.since:
                    refusal = refusal or too_old(node, self._made(text), self.since)
                return refusal or Match(node, every, {"values": {**found.values, **found.attributes, **more}})
        return None

    @cached_property
    def _text(self) -> Text:
        from onnxsmith.optimizer.rules._pattern_text import read

        return read(self.pattern, self.replacement)

    def _made(self, text: Text) -> str:
        made = text.replacement.nodes[-1].op_type
        return f"{made} with {self.form}" if self.form else made

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        from onnxsmith.optimizer.rules._pattern_text import written

        return written(tape, self._text.replacement, match.found["values"])
