"""Runs in the child process of `tract.py`. Only this module imports tract."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._dtypes import name_of
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes.base import Array, Outputs, Value

DTYPES = {
    "bool": "bool", "float16": "f16", "float": "f32", "double": "f64",
    **{f"{kind}{size}": f"{sign}{size}" for sign, kind in (("i", "int"), ("u", "uint")) for size in (8, 16, 32, 64)},
}  # fmt: skip
"""Maps ONNX's dtypes to tract's names, for the dtypes that its interface takes and returns."""
_KEPT = 4
"""Limits the input sizes for which a session keeps a model of its own. A choice: each model holds the weights again."""
_NEVER = re.compile(r"Unimplemented\(|Unknown DatumType")
"""Matches messages of refusals that do not depend on the sizes of the inputs."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Lists the dtype and the sizes of each input."""


@dataclass
class Held:
    """Holds a model that was read, and the models prepared from it."""

    path: str
    names: list[str]
    """Names the inputs, in tract's order."""
    symbolic: Any = None
    """Is the model for all sizes; None if tract cannot make such a model."""
    is_fixed: bool = False
    """Whether the model itself fixes all sizes."""
    gives_sizes: bool = False
    """Whether an output is a dimension."""
    refused: str = ""
    """Says why tract refuses the model with symbols, or inputs for this model."""
    analysed: set[Shapes] = field(default_factory=set)
    """Holds sizes that tract accepts."""
    static: OrderedDict[Shapes, Any] = field(default_factory=OrderedDict)
    """Maps some sizes to models for these sizes. The least recently used model is first."""

    @property
    def sized(self) -> str:
        """Returns the text for the caller about a run at fixed sizes."""
        return f"static: {self.refused}" if self.refused else "sizes" if self.gives_sizes else "static"


class Host(Hosting[Held]):
    """Holds tract's models. Outputs are named by index, because tract renames some."""

    def about(self) -> dict[str, Any]:
        return {"version": _library().version()}

    def prepare(self, request: dict[str, Any]) -> tuple[Held, dict[str, Any]]:
        ports = {name: (dtype, dims) for name, dtype, dims in request["inputs"]}
        model = _library().onnx().load(request["path"])
        names = [model.input_name(index) for index in range(model.input_count())]
        specs = _symbolic({name: ports[name] for name in names})
        held = Held(request["path"], names)
        if specs is None:
            return held, {"inputs": names, "shapes": "static"}
        held.is_fixed = all(isinstance(dim, int) for name in names for dim in ports[name][1])
        try:
            typed = _with(model, specs).into_model()
            # An output that is a dimension stays a symbol in this model: its number needs fixed sizes.
            held.gives_sizes = any(str(fact).endswith("tdim") for fact in typed.output_facts())
            if held.is_fixed or not held.gives_sizes:
                held.symbolic = typed.into_runnable()
        except _library().TractError as error:
            if held.is_fixed or _NEVER.search(str(error)):
                raise
            held.refused = _said(error)
        return held, {"inputs": names, "shapes": "symbolic" if held.symbolic and not held.is_fixed else held.sized}

    def run(self, held: Held, values: dict[str, Value]) -> Outputs:
        given = [value for value in map(values.get, held.names) if isinstance(value, np.ndarray)]
        shapes = tuple((name_of(value.dtype), value.shape) for value in given)
        results = None if held.symbolic is None else _run_symbolic(held, shapes, given)
        how = held.sized if results is None or held.is_fixed else "symbolic"
        found: Outputs = {"shapes": np.array(how, object)}
        if results is None:
            results = _static(held, shapes).run(given)
        return found | {str(index): _array(result) for index, result in enumerate(results)}

    def call(self, held: Held, values: dict[str, Value]) -> Callable[[], object]:
        given = [value for value in map(values.get, held.names) if isinstance(value, np.ndarray)]
        tensors = [_library().Tensor.from_numpy(value) for value in given]
        shapes = tuple((name_of(value.dtype), value.shape) for value in given)
        model: Any = None

        def once() -> None:
            nonlocal model
            if model is not None:
                model.run(tensors)
                return
            # The first call chooses the model as `run` does; later calls go straight to it.
            took_symbols = str(self.run(held, values)["shapes"]) == "symbolic"
            as_it_is = held.symbolic is not None and (held.is_fixed or took_symbols)
            model = held.symbolic if as_it_is else _static(held, shapes)

        return once

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        if request["do"] != "unchanged":
            return super().more(request, values)
        _unchanged(request["path"], values, sized=request["sized"])
        return {}, {}

    def around(self, held: Held, values: dict[str, Value]) -> str:
        return "run on tensors"


def _library() -> Any:
    os.environ["RUST_BACKTRACE"] = "0"  # a stack of native frames says nothing to a user, and hides the message
    import tract

    return tract


def _unchanged(path: str, values: dict[str, Value], *, sized: bool) -> None:
    """Prepares and runs a file as tract reads it, with the file's own dimensions. With `sized`, uses the sizes of the
    inputs instead."""
    model = _library().onnx().load(path)
    names = [model.input_name(index) for index in range(model.input_count())]
    given = [value for value in map(values.get, names) if isinstance(value, np.ndarray)]
    if sized:
        _with(model, [",".join([*map(str, one.shape), DTYPES[name_of(one.dtype)]]) for one in given])
    runnable = model.into_model().into_runnable()
    if len(given) == len(names):
        for result in runnable.run(given):
            _array(result)


def _symbolic(ports: Mapping[str, tuple[str, Sequence[int | str | None] | None]]) -> list[str] | None:
    """Returns tract's description of each input, with new symbols. Tract reads the model's own symbols as formulas, and
    refuses some of them. Returns None if a rank or a dtype is unknown."""
    symbols: dict[object, str] = {}
    specs = []
    for name, (dtype, dims) in ports.items():
        if dims is None or dtype not in DTYPES:
            return None
        keys = [dim if dim is not None else (name, axis) for axis, dim in enumerate(dims)]
        sizes = [str(k) if isinstance(k, int) else symbols.setdefault(k, f"onnxsmith_{len(symbols)}") for k in keys]
        specs.append(",".join([*sizes, DTYPES[dtype]]))
    return specs


def _with(model: Any, specs: Sequence[str]) -> Any:
    """Returns the model with these descriptions of its inputs."""
    for index, spec in enumerate(specs):
        model.set_input_fact(index, spec)
    return model


def _loaded(held: Held, shapes: Shapes) -> Any:
    specs = [",".join([*map(str, sizes), DTYPES[dtype]]) for dtype, sizes in shapes]
    return _with(_library().onnx().load(held.path), specs)


def _run_symbolic(held: Held, shapes: Shapes, given: list[Array]) -> Any:
    """Runs the model for all sizes; returns None if the model refuses these inputs. Sizes that do not fit together are
    refused before tract runs: with symbols, tract does not notice them, and reads memory that it does not own."""
    if not held.is_fixed and shapes not in held.analysed:
        _loaded(held, shapes).analyse()
        held.analysed.add(shapes)
    try:
        return held.symbolic.run(given)
    except _library().TractError as error:
        if held.is_fixed:
            raise
        held.refused = _said(error)
        return None


def _static(held: Held, shapes: Shapes) -> Any:
    """Returns the model for the sizes in `shapes`."""
    if shapes not in held.static:
        made = _loaded(held, shapes).into_model().into_runnable()
        while len(held.static) >= _KEPT:
            held.static.popitem(last=False)
        held.static[shapes] = made
    held.static.move_to_end(shapes)
    return held.static[shapes]


def _array(tensor: Any) -> Value:
    """Returns the result as an array. A dimension has a type of its own in tract, and becomes int64 as in ONNX."""
    library = _library()
    try:
        array: Array = tensor.to_numpy()
    except library.TractError as error:
        if "TDim" not in str(error):
            raise
        array = tensor.convert_to(library.DatumType.I64).to_numpy()
    return array


def _said(error: Exception) -> str:
    """Returns an error in one line, with the node that the error names."""
    told = translate(error).problem
    return " ".join(part for part in (told.what if told.id != "runtime/failed" else "", told.why) if part)


def translate(error: Exception) -> OnnxsmithError:
    """Turns tract's chain of causes into a problem, with the node that the chain names and the innermost cause."""
    said = str(error).split("\nStack backtrace")[0]
    lines = [re.sub(r"^\d+: ", "", line.strip()) for line in said.splitlines()]
    lines = [line for line in lines if line and line != "Caused by:"] or [type(error).__name__]
    node = re.search(r'node #\d+ "([^"]*)" (\w+)|Building node (\S*) \((\w+)\)', said)
    where = f"node {node[1] or node[3] or ''!r} ({node[2] or node[4]})" if node else ""
    if lacking := re.search(r'(?:"([^"]*)" )?Unimplemented\(([^)]+)\)', said):
        return problem(
            "runtime/unknown-operator",
            f"tract does not have the operator {lacking[2]}",
            where=f"node {lacking[1]!r}" if lacking[1] else "",
            why=" ".join(lines[-1:])[:600],
            fix="replace the node, or use --runtime onnxruntime",
        )
    if dtype := re.search(r"Unknown DatumType (\w+)|Unsupported DatumType in the public API (\w+)", said):
        return problem(
            "runtime/no-kernel",
            f"tract has no dtype {(dtype[1] or dtype[2]).lower()}",
            where=where,
            fix="use --runtime onnxruntime or --runtime reference",
        )
    return problem(
        "runtime/failed",
        "tract refused or failed",
        where=where,
        why=(lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}")[:600],
        fix="`onnxsmith explain runtime/failed` lists what these messages usually mean",
    )


def main() -> None:
    """Runs the child process."""
    serve(Host(), translate)
