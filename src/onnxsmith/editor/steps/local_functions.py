"""`inline`, `outline`: replace calls of local functions by their bodies, and nodes by calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few, listed, several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.function_outlining import outlined, refuse_loops, refuse_unlike
from onnxsmith.editor.node_regions import Layout, Region, difference, of_matches, of_modules, of_nodes, without_shared
from onnxsmith.editor.places import ALL, places
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.structure import tensor_paths, versions, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.inlining import inlined


@dataclass(frozen=True)
class Inline(Step):
    """Replaces the calls of the local function `function` (`domain::Name`), or of all functions, by their bodies. The
    outputs keep their numbers. If the file declares shapes of intermediate tensors, those of the new tensors are
    declared too."""

    first = ("function",)

    function: str | None = None

    def apply(self, work: Work) -> str:
        known = {f"{one[0]}::{one[1]}": one for one in work.model.functions}
        if not known:
            raise problem("edit/no-match", "the model has no local functions", fix="leave the step out")
        if self.function is not None and self.function not in known:
            near = tensor_paths.near(self.function, list(known))
            raise problem(
                "edit/no-match",
                f"there is no local function {self.function!r}",
                why=f"the model has {listed(known)}",
                fix=f"write {(near or list(known))[0]!r}",
            )
        only = None if self.function is None else [known[self.function]]
        model, trouble = inlined(work.model, only=only)
        if trouble:
            failing = [name for name, one in known.items() if inlined(work.model, only=[one])[1]]
            raise problem(
                "edit/not-inlined",
                "the functions cannot be inlined",
                why=trouble,
                fix=f"export the model again: a call or a result of {first_few(failing or list(known), _FEW)} does "
                "not fit the function, so no runtime can run the model",
            )
        declares = any(value.shape is not None for value in _inside(work.model))
        before = {value.name for value in _inside(work.model)}
        work.become(model, inlines=True)
        if declares:
            work.infer()
            for value in _inside(model):
                if value.name not in before:
                    work.declare(value)
        return self.function or several(len(known), "function")


_FEW = 3
"""Limits the functions in a message. A choice."""


def _inside(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the results of nodes of the main graph, of branches and of bodies, without graph outputs."""
    for graph in walk.main_graphs(model):
        for node in graph:
            yield from (value for value in node.outputs if not value.is_graph_output())


def _first_name(work: Work) -> str:
    """Returns the name of the first node that has one, as an example for a selector."""
    return next((node.name for node in walk.nodes(work.model.graph) if node.name), "layer1/*")


@dataclass(frozen=True)
class Outline(Step):
    """Makes the local function `to` (`domain::Name`), and calls it in place of the nodes that it was made of. `node`
    selects nodes for one call. `find` is a pattern (with `where` and `count`, as in `replace`) and makes a call for
    each match. `module` is a path and makes a call for each torch module that fits. Matches and modules must be alike.
    Attributes that differ become attributes of the function. Tensors that the nodes read become inputs of the function,
    including weights. The outputs keep their numbers."""

    first = ("to",)

    to: str
    node: Any = None
    find: str | Pattern | Callable[..., Any] | None = None
    module: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    count: int | str = ALL

    def apply(self, work: Work) -> str:
        domain, name = self._identifier(work)
        regions = self._regions(work)
        layouts = [Layout(region) for region in regions]
        if self.module is not None and any(difference(layouts[0], one) for one in layouts[1:]):
            regions = without_shared(work, regions)
            layouts = [Layout(region) for region in regions]
        refuse_unlike(layouts)
        orders = {id(graph): list(graph) for graph in (region.graph for region in regions)}
        at = {node: place for order in orders.values() for place, node in enumerate(order)}
        early = [region.graph for region in regions if refuse_loops(region, orders[id(region.graph)], at)]
        imports = self._imports(work, layouts[0])
        for layout in layouts:
            work.opsets(layout.nodes[0]).setdefault(domain, 1)  # type: ignore[attr-defined]
        function = outlined(layouts, (domain, name), imports, at)
        work.model.functions[function.identifier()] = function
        for graph in {id(graph): graph for graph in early}.values():
            _sort(graph, regions)
        work.model.opset_imports.setdefault(domain, 1)
        work.model.ir_version = max(work.model.ir_version or 0, versions.FUNCTIONS)
        work.become(cloned(work.model))
        size = several(len(regions[0].nodes), "node")
        labels = first_few([region.name for region in regions], 3)
        given = f", {several(len(function.attributes), 'attribute')}" if function.attributes else ""
        return f"{domain}::{name} of {size}{given}: {several(len(regions), 'call')} ({labels})"

    def _regions(self, work: Work) -> list[Region]:
        asked = [self.node is not None, self.find is not None, self.module is not None]
        if sum(asked) != 1:
            raise problem(
                "edit/step-argument",
                "it is not clear which nodes should become a function",
                why="exactly one of node, find and module has to select the nodes",
                fix=f'write node = "{_first_name(work)}", or find = "Mul(x, Sigmoid(x))", or module = "layers.*"',
            )
        if self.node is not None:
            nodes = work.find.nodes(self.node)
            return [of_nodes(nodes, walk.node_label(nodes[0]))]
        if self.module is not None:
            return of_modules(work, self.module)
        assert self.find is not None
        if self.where:
            work.infer()
        pattern = pattern_of(self.find)
        said = " ".join(self.find.split()) if isinstance(self.find, str) else pattern.name
        return of_matches(places(work.model, pattern, self.where, self.count, said))

    def _identifier(self, work: Work) -> tuple[str, str]:
        domain, _, name = self.to.partition("::")
        if not (domain and name) or domain == "ai.onnx":
            raise problem(
                "edit/step-argument",
                f"{self.to!r} is not a valid name for a function",
                why="the name consists of your own domain and a name, but ai.onnx is the domain of ONNX"
                if domain == "ai.onnx"
                else "a function's name consists of your own domain and a name, with :: between them",
                fix=f'write to = "my.model::{name or domain.rpartition(".")[2]}"',
            )
        if any(node.op_identifier()[:2] == (domain, name) for node in walk.all_nodes(work.model)) or any(
            one[:2] == (domain, name) for one in work.model.functions
        ):
            raise problem(
                "edit/name-taken",
                f"the model already uses an operator {self.to}",
                fix=f'write to = "{self.to}2"',
            )
        if not walk.has_own_initializers(work.model):
            raise problem(
                "edit/step-argument",
                f"a model of IR version {work.model.ir_version} cannot hold functions",
                why="before version 4, each weight is also an input; a newer version would change that",
                fix='make the weights constants first: do = "drop-input", input = "*"',
            )
        return domain, name

    def _imports(self, work: Work, layout: Layout) -> dict[str, int]:
        """Returns the opsets that the nodes use, by domain."""
        known = work.opsets(layout.nodes[0])
        used = {node.domain for node in layout.nodes}
        return {domain: known[domain] for domain in known if domain in used}


def _sort(graph: ir.Graph, regions: list[Region]) -> None:
    try:
        graph.sort()
    except ValueError as error:
        raise problem(
            "edit/cycle",
            "of two calls, each would need a result of the other",
            where=", ".join(region.name for region in regions[:3]),
            why=str(error),
            fix="select fewer nodes, so that each call can run before or after the others",
        ) from error
