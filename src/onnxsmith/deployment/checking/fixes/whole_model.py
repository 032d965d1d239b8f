"""Defines fixes that write the model as a whole in another form."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.words import first_few
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.structure import body_names, versions, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.versions import newest
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.optimizer.simplification_rounds import simplified


class Simplify(Fix):
    """Simplifies the model.

    Constant folding and rules remove nodes that compute shapes, branches that are never taken, and unused nodes.
    """

    rank = 15

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made, part = simplified(model)
        if part.fired:
            yield "simplified", made
        made, part = simplified(model, inline_functions=True, max_growth=1.0)
        if part.fired:
            yield "simplified, with larger constants", made


class InlineFunctions(Fix):
    """Replaces the calls of local functions by their bodies.

    Some targets know no local functions, or only functions without attributes.
    """

    rank = 10

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        if model.functions:
            made, reason = inlined(model)
            if not reason:
                yield "local functions replaced by their bodies", made


_IR_VERSIONS = (10, 9, 8, 7, 4, 3)
"""Lists IR versions in the order of trial, the least change first. 5 and 6 are missing, because the releases that read
them also read 7."""


class OlderIrVersion(Fix):
    """Writes the file in an older IR version.

    The IR version says which features of the file format a reader must know. Exporters write the newest version.
    """

    rank = 5

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        least = versions.least_ir(model)
        for version in _IR_VERSIONS:
            if least <= version < (model.ir_version or 0):
                made = cloned(model)
                made.ir_version = version
                yield f"IR version {version}", made


_OPSETS = (20, 18, 17, 16, 13, 12, 21, 22, 23, 24, 25)
"""Lists opsets in the order of trial: first lower opsets, which older converters read, then higher opsets, which have
newer operators. Opsets 18 and 13 changed many operators: axes became inputs."""


class OtherOpset(Fix):
    """Converts the model to another opset.

    A target may know an operator only in an older form, or only in a newer form.
    """

    rank = 30

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        now = opset_conversion.of(model)
        for version in _OPSETS:
            if version == now or version > newest().opset:
                continue
            try:
                yield f"written in opset {version}", opset_conversion.convert(model, version)
            except OnnxsmithError:
                continue


class DeclaredShapes(Fix):
    """Removes the declared shapes of intermediate tensors.

    A target that infers shapes itself stops if a declared shape is false, or gives a dimension another name.
    """

    rank = 6

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made, found = cloned(model), False
        for graph in walk.graphs(made):
            kept = set(graph.outputs)
            for node in graph:
                for value in node.outputs:
                    if value.shape is not None and value not in kept:
                        value.shape, found = None, True
                        if node.domain in ("", "ai.onnx"):  # a type without a shape breaks the specification
                            value.type = None
        if found:
            yield "without the declared shapes of intermediate tensors", made
        if found and made.functions:
            flat, reason = inlined(made)
            if not reason:
                yield (
                    "without the declared shapes of intermediate tensors, local functions replaced by their bodies",
                    flat,
                )


class NodeNames(Fix):
    """Gives each node a unique name.

    The specification allows each node name only once in a graph. onnxruntime refuses a file in which two nodes share
    a name.
    """

    rank = 4

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made = cloned(model)
        known: set[str] = set()
        taken = {node.name for node in walk.all_nodes(made) if node.name}
        count = 0
        for node in walk.all_nodes(made):
            if node.name in known:
                count += 1
                number = 1
                while f"{node.name}_{number}" in taken:
                    number += 1
                node.name = f"{node.name}_{number}"
                taken.add(node.name)
            known |= {node.name} if node.name else set()
        if count:
            yield "nodes renamed, so that every name is unique", made


class BodyNames(Fix):
    """Gives tensors in branches and bodies names that no outer graph has.

    The specification forbids that such a tensor hides a tensor of an outer graph. onnxruntime reads the inner tensor;
    OpenVINO refuses the file.
    """

    rank = 3

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made, said = body_names.renamed(model)
        if said:
            names = first_few(list(said), _SHOWN)
            yield f"tensors in bodies renamed, because an outer graph has the same names: {names}", made


_SHOWN = 3
"""Limits the tensors that a fix names. A choice."""
