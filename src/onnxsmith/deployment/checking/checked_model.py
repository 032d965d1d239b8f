"""Holds the model about which targets are asked: an input that the model accepts, its form at fixed sizes, and values
of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.save import save_for_now
from onnxsmith.graph.files.sharing import LARGE, held
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.shapes.symbolic_inference import infer, inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.dim_ranges import Size, one_size
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Outputs, Session
from onnxsmith.verification.by_layer.intermediates import intermediates
from onnxsmith.verification.input_search import Plan, Search, Tries
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_limits import SizeLimits
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.runtime_choice import able, in_order

_GIVEN = ".given"
"""Is the ending that `cut` adds to the names of new inputs."""


_MOST_HELD = 2**28
"""Limits the bytes of computed tensors that are kept. A choice: 256 MB."""


@dataclass(eq=False)
class Subject:
    """Holds a model, with the user's input and sizes, if any. `source` is its file."""

    model: ir.Model
    source: Path | None = None
    given: tuple[Feed, ...] = ()
    sizes: Mapping[str, Size] = field(default_factory=dict)
    seed: int = 0
    free: Sequence[str] = ()
    """Names the outputs that are free by definition, as `--free` does."""
    _folder: Path | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _values: dict[str, Any] = field(default_factory=dict)
    _observed: bool = False

    @cached_property
    def shaped(self) -> ir.Model:
        """Returns the model with inferred shapes. If inference finds no type of a tensor, the type is taken from its
        value on `feeds`."""
        shaped = inferred(self.model)[0]
        if self.feeds is not None:
            observe(shaped, self.feeds, static=not self.dynamic)
        return shaped

    @cached_property
    def feeds(self) -> Feeds | None:
        """Returns an input that a runtime accepts; None if no such input was found."""
        if self.given:
            return self.given[0].values
        generator = Generator.for_model(inferred(self.model)[0]).under(signature(self.model))
        is_prepared = False
        for name in in_order():
            try:
                with runtimes.get(name).prepare(self.model) as session:
                    is_prepared = True
                    found = Search(Tries(session, Plan(generator, known=self.sizes, seed=self.seed))).base()
                    if found is not None:
                        return found.feed.values
            except OnnxsmithError:  # another runtime may take the model
                continue
        if is_prepared:
            return None
        # No runtime here takes the model, but a target may.
        limits = SizeLimits(generator.signature, self.sizes)
        ones = {**dict.fromkeys(symbols(generator.signature), 1), **one_size(self.sizes)}
        return generator.feed(limits.fitted(ones) or ones, seed=self.seed).values

    @property
    def dynamic(self) -> bool:
        """Whether an input has a symbolic or unknown dimension."""
        return any(
            value.shape is None or not value.shape.is_static()
            for value in self.model.graph.inputs
            if isinstance(value.type, ir.TensorType)
        )

    @cached_property
    def static(self) -> Subject | None:
        """Returns the model with the sizes of `feeds`; None if its sizes are fixed already, or no input is known."""
        feeds = self.feeds
        if not self.dynamic or feeds is None:
            return None
        made = cloned(self.model)
        for value in made.graph.inputs:
            array = feeds.get(value.name or "")
            if isinstance(array, np.ndarray):
                value.shape = ir.Shape(array.shape)
        # Shapes with symbols would stay beside the sizes: all are inferred anew. The numbers that the file declares
        # stay, because a target may refuse the file for them.
        declared = {
            value: value.shape
            for graph in walk.graphs(made)
            for node in graph
            for value in node.outputs
            if value.shape is not None
        }
        for value in declared:
            value.shape = None
        infer(made)
        for value, shape in declared.items():
            value.shape = _with_numbers(value.shape, shape)
        return Subject(made, None, (Feed("the same sizes", {}, dict(feeds)),), {}, self.seed, self.free)

    def with_model(self, model: ir.Model) -> Subject:
        """Returns another form of the model, with the same input."""
        feeds = self.feeds
        given = self.given or ((Feed("the same input", {}, dict(feeds)),) if feeds is not None else ())
        return Subject(model, None, given, self.sizes, self.seed, self.free)

    @property
    def fixed_sizes(self) -> str:
        """Returns the sizes of `feeds` in words: `batch=1, height=32`."""
        if self.feeds is None:
            return ""
        found = of_feed(signature(self.model), self.feeds)
        return ", ".join(f"{name}={size}" for name, size in found.items()) or "the sizes of the input"

    @property
    def file(self) -> Path:
        """Returns a file of the model."""
        if self.source is not None and self.source.suffix == ".onnx":
            return self.source
        if self._folder is None:
            self._folder = self._stack.enter_context(folders.temporary())
        path = self._folder / "model.onnx"
        if not path.exists():
            save_for_now(self.model, path, external_data=True if held(self.model) > LARGE else None)
        return path

    def part_feeds(self, part: ir.Model, *, only_real: bool = False) -> Feeds | None:
        """Returns inputs for a part that was cut out of the model: the model's own inputs, and the values of
        intermediate tensors on these inputs. If no runtime here can compute the values, they are zeros of the right
        sizes, unless `only_real`. Returns None if an input is unknown."""
        wanted = [value.name or "" for value in part.graph.inputs if not value.is_initializer()]
        feeds = self.feeds
        if feeds is None:
            return None
        computed = [name for name in wanted if name not in feeds and _origin(name) not in self._values]
        if computed and not self._observed:
            self._observe(feeds)
            computed = [name for name in computed if _origin(name) not in self._values]
        if computed:
            values = self._computed([_origin(name) for name in computed])
            self._values |= {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        found = {name: feeds[name] if name in feeds else self._values.get(_origin(name)) for name in wanted}
        if not only_real:
            sizes = of_feed(signature(self.model), feeds)
            ports = {value.name: value for value in part.graph.inputs}
            found = {name: _zeros(ports[name], sizes) if value is None else value for name, value in found.items()}
        return None if any(value is None for value in found.values()) else found

    def _observe(self, feeds: Feeds) -> None:
        """Computes the values of all tensors at once, because a run for each part would take longer than asking the
        target."""
        self._observed = True
        names = [value.name for node in self.shaped.graph for value in node.outputs if value.name]
        held = 0
        try:
            runtime = runtimes.get(able([self.shaped], {}).runtime)
            for name, array in intermediates(self.shaped, runtime, None, names, feeds):
                held += getattr(array, "nbytes", 0)
                if held > _MOST_HELD:
                    return
                if isinstance(array, np.ndarray):
                    self._values[name] = array
        except OnnxsmithError:
            return  # then the parts are computed one by one, if a runtime takes them

    def _computed(self, names: list[str]) -> Outputs:
        known = {value.name for node in self.shaped.graph for value in node.outputs}
        if self.feeds is None or not set(names) <= known:
            return {}
        part = cut(self.shaped, (), names)
        wanted = {value.name for value in part.model.graph.inputs}
        try:
            with self._prepared(part.model) as session:
                return session.run({name: value for name, value in self.feeds.items() if name in wanted})
        except OnnxsmithError:
            return {}

    def _prepared(self, model: ir.Model) -> Session:
        return runtimes.get(able([model], {}).runtime).prepare(model)

    def close(self) -> None:
        """Removes the temporary file."""
        self._stack.close()
        # `static` is cached: ask for it only if it was made.
        if "static" in vars(self) and self.static is not None:
            self.static.close()


def _zeros(value: ir.Value, sizes: Mapping[str, int]) -> np.ndarray | None:
    """Returns zeros of the value's dtype and sizes; None if dtype or a size is unknown."""
    if value.dtype is None or value.shape is None or value.dtype is ir.DataType.STRING:
        return None
    shape = [dim if isinstance(dim, int) else dims.evaluate(dim.value, sizes) for dim in value.shape]
    known = [size for size in shape if size is not None]
    return np.zeros(known, value.dtype.numpy()) if len(known) == len(shape) else None


def _with_numbers(found: ir.Shape | None, declared: ir.Shape) -> ir.Shape:
    """Returns the inferred shape with the numbers of the declared shape in place of its own."""
    same_rank = found is not None and len(found) == len(declared)
    inferred_dims = list(found) if same_rank and found is not None else [None] * len(declared)
    return ir.Shape([own if isinstance(own, int) else dim for own, dim in zip(declared, inferred_dims, strict=True)])


def _origin(name: str) -> str:
    """Returns the tensor that a new input stands for."""
    return name[: name.rindex(_GIVEN)] if _GIVEN in name else name


def observe(model: ir.Model, feeds: Feeds, *, static: bool) -> None:
    """Sets the unknown types and ranks of tensors of the main graph to their types and ranks on `feeds`. Without
    `static` the sizes stay unknown."""
    unknown = {
        value.name: value
        for node in model.graph
        for value in node.outputs
        if value.name and (value.type is None or value.shape is None)
    }
    if not unknown:
        return
    try:
        found = intermediates(model, runtimes.get(able([model], {}).runtime), None, list(unknown), feeds)
        for name, array in found:
            if isinstance(array, np.ndarray):
                unknown[name].type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
                unknown[name].shape = ir.Shape(array.shape if static else [None] * array.ndim)
    except OnnxsmithError:
        return  # the model cannot be cut at these tensors; the report says so
