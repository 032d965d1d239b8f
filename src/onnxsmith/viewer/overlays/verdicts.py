"""Colours nodes by the decisions of a command: rewrites, precision, errors, targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxsmith.base.report.parts.edits import Entry
from onnxsmith.base.report.parts.edits import Simplification as SimplificationPart
from onnxsmith.base.report.parts.layers import Layers as LayersPart
from onnxsmith.base.report.parts.quantisation import Precision as PrecisionPart
from onnxsmith.base.report.parts.quantisation import Quantisation as QuantisationPart
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck
from onnxsmith.base.report.parts.target_checks import TargetChecks as TargetChecksPart
from onnxsmith.base.words import size
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure


class Simplification(Overlaying):
    """Shows the nodes that `simplify` rewrote, and the nodes at which it refused a rewrite.

    The layers show rules at the nodes that the rules removed and added. The simplified model has only added nodes, the
    original only removed nodes.
    """

    made = "one rewrite added these nodes, and a later rewrite removed them"

    def remarks(self, part: SimplificationPart) -> Iterator[str]:
        if not part.fired and not part.refused:
            yield "simplify found nothing to rewrite, and refused nothing"

    def layers(self, part: SimplificationPart, names: Names) -> Iterator[Layer]:
        yield from rewritten(part.fired, part.refused, names)


def rewritten(fired: Sequence[Entry], refused: Sequence[Entry], names: Names) -> Iterator[Layer]:
    """Yields a layer of the rewrites that were made, and a layer of the refused rewrites."""
    for title, entries in (("rewrites", fired), ("refused rewrites", refused)):
        rules = list(dict.fromkeys(entry.rule for entry in entries))
        layer = Layer(title, scale="classes", classes=rules)
        for entry in entries:
            said = f"{entry.rule}: {entry.why_not}" if entry.why_not else entry.rule
            if entry.gone or entry.made:
                said += f": {', '.join(entry.gone) or 'nothing'} → {', '.join(entry.made) or 'nothing'}"
            gone, _, _ = entry.where.partition(" = ")  # `a = b`: node b took the place of its equal a
            others = (node for name in (*entry.gone_names, *entry.made_names) for node in names.seen(name))
            for node in dict.fromkeys((*names.node_or_maker(gone), *others)):
                before = layer.figures.get(node)
                layer.figures[node] = rules.index(entry.rule), said if before is None else f"{before[1]}; {said}"
        yield layer


class Precision(Overlaying):
    """Shows the nodes that stay in float32, from `bisect`.

    The layers show which nodes stay, and their own errors in the narrow dtype.
    """

    def remarks(self, part: PrecisionPart) -> Iterator[str]:
        if not part.kept:
            yield f"no node has to stay in float32: {part.summary()}"

    def layers(self, part: PrecisionPart, names: Names) -> Iterator[Layer]:
        kept = Layer("stays in float32", scale="classes", classes=["stays in float32"])
        own = Layer(f"error in {part.to}")
        for one in part.kept:
            for node in names.node(one.name):
                kept.figures[node] = 0, f"{one.why}; range {one.range}" if one.range else one.why
                if one.own is not None:
                    own.figures[node] = figure(one.own), f"{one.own:.2g} of the scale of its result, in {part.to}"
        yield kept
        yield own


class Quantisation(Overlaying):
    """Shows the layers that `quantize` made narrow, and their errors.

    The figures are the precision of each layer, and the error of the model if only this layer is narrow.
    """

    made = "quantize first simplifies a copy, and the file does not contain the new nodes of that copy"

    def remarks(self, part: QuantisationPart) -> Iterator[str]:
        if not part.layers:
            yield f"no layer could become {part.to}: {part.summary()}"

    def layers(self, part: QuantisationPart, names: Names) -> Iterator[Layer]:
        kind = Layer("precision", scale="classes", classes=[part.to, "weights alone", "stays as it was"])
        damage = Layer(f"error in {part.to}, alone")
        for one in part.layers:
            for node in names.node(one.name):
                said = f"{part.to}, {size(one.nbytes)} of weights"
                said = f"{said}, but activations stay in float: {one.weights}" if one.weights else said
                said = f"stays as it was: {one.kept}" if one.kept else said
                kind.figures[node] = 2 if one.kept else 1 if one.weights else 0, said
                if one.damage is not None:
                    damage.figures[node] = figure(one.damage), f"{one.damage:.2g} of the size of its result; {said}"
        yield kind
        yield damage


_VERDICTS = (
    "equal", "rounding", "computed otherwise", "inherited", "own error, slight", "own error, not followed", "own error",
)  # fmt: skip


class Layers(Overlaying):
    """Shows the error of each tensor, from `compare --per-layer`.

    The layers show own and inherited errors, relative to the tensor's scale, and the verdict of the comparison. The
    layers use the candidate's names.
    """

    newer = True

    def subject(self, part: LayersPart) -> str:
        return part.candidate

    def layers(self, part: LayersPart, names: Names) -> Iterator[Layer]:
        inherited = Layer("error including the error of the inputs")
        own = Layer("error of the node itself")
        verdict = Layer("verdict of the comparison", scale="classes", classes=list(_VERDICTS))
        for one in part.layers:
            nodes = names.maker(one.name)
            for node in nodes:
                said = (
                    f"{one.name}: {one.verdict}, {one.inherited:.2g} of its scale; rounding explains {one.allowed:.2g}"
                )
                inherited.figures[node] = figure(one.inherited), said
                if one.own is not None:
                    own.figures[node] = figure(one.own), f"{one.name}: {one.own:.2g} of its scale by itself"
                if one.verdict in _VERDICTS:
                    verdict.figures[node] = _VERDICTS.index(one.verdict), said
        yield inherited
        yield own
        yield verdict


_TAKEN = (Stage.FITS, Stage.PARSED, Stage.BUILT, Stage.RAN, Stage.AGREED)


class TargetChecks(Overlaying):
    """Shows the verdict of each target on the nodes, from `check`.

    Each target has a layer; the targets that refuse the model come first. The layer shows the nodes that the target
    refuses, and the nodes of which nothing is known. If the target accepts the model, all other nodes are shown as
    accepted.
    """

    def remarks(self, part: TargetChecksPart) -> Iterator[str]:
        for check in part.checks:
            helps = f"; what helps: {check.rewrite}" if check.rewrite else ""
            why = f": {check.why}" if check.why else ""
            if check.stage is Stage.REFUSED and (check.whole or not check.nodes):
                yield f"{_title(check)} refuses the whole model{why}{helps}"
            elif check.stage is Stage.NOT_TRIED and not check.nodes:
                yield f"{_title(check)} was not tried{why}"
            elif check.changed:
                took = f"{check.stage.value} {check.changed}"
                yield f"{_title(check)} refuses the unchanged file: {check.as_it_is}; {took}"
            elif check.symbols:
                yield f"{_title(check)} accepts fixed sizes only; with dynamic shapes it refuses: {check.symbols}"

    def layers(self, part: TargetChecksPart, names: Names) -> Iterator[Layer]:
        for check in sorted(part.checks, key=lambda one: one.stage in _TAKEN):  # refusals first
            taken = [check.stage.value] if check.stage in _TAKEN else []
            stages = list(dict.fromkeys([*taken, *(one.stage.value for one in check.nodes)]))
            layer = Layer(_title(check), scale="classes", classes=stages)
            for node in names.every() if taken else ():
                layer.figures[node] = 0, check.stage.value
            for one in check.nodes:
                said = "; ".join(
                    text for text in (one.why, f"what helps: {one.rewrite}" if one.rewrite else "") if text
                )
                for node in names.node_or_maker(one.node):
                    layer.figures[node] = stages.index(one.stage.value), f"{one.stage.value}: {said}"
            yield layer


def _title(check: TargetCheck) -> str:
    return check.title or check.target
