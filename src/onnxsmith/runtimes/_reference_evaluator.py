"""Evaluates a model with onnx.reference, in this process. Only child processes import it, because the operators of
onnx.reference take long to import."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from onnxsmith.base.problem import problem
from onnxsmith.graph.files import external
from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import model_message
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import _feeds, _first_opsets
from onnxsmith.runtimes._maps import of_map, to_map
from onnxsmith.runtimes.base import Feeds, Outputs, Session, Value


class Flatten(OpRun):
    """Flattens as the standard says. That of the evaluator refuses tensors without elements (onnx 1.23)."""

    op_domain = ""

    def _run(self, x: Any, axis: int | None = None) -> tuple[Any]:
        at = 1 if axis is None else axis + len(x.shape) if axis < 0 else axis
        return (x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:])),)


class BatchNormalization(OpRun):
    """Normalises as the standard says. Between opsets 9 and 13 the evaluator mixes statistics of the batch into the
    given mean and variance, although a node with one output is in test mode (onnx 1.23)."""

    op_domain = ""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        var: Any,
        epsilon: float | None = None,
        momentum: float | None = None,
        training_mode: int | None = None,
        is_test: int | None = None,
        spatial: int | None = None,
        consumed_inputs: Any = None,
    ) -> tuple[Any, ...]:
        epsilon, momentum = 1e-5 if epsilon is None else epsilon, 0.9 if momentum is None else momentum
        count, version = len(self.onnx_node.output), self.run_params["opsets"].get("", 14)
        trains = bool(training_mode) if version >= 14 else count > 1 and not is_test
        if not trains:
            return (self._normalised(x, scale, bias, mean, var, epsilon),)
        axes = tuple(axis for axis in range(x.ndim) if axis != 1) if spatial is None or spatial else (0,)
        of_batch = x.mean(axes), x.var(axes)
        running = [old * momentum + new * (1 - momentum) for old, new in zip((mean, var), of_batch, strict=True)]
        results = [self._normalised(x, scale, bias, *of_batch, epsilon), *running, *of_batch]
        return tuple(one.astype(x.dtype) for one in results[:count])

    @staticmethod
    def _normalised(x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float) -> Any:
        behind = (1,) * (x.ndim - 1 - scale.ndim)
        scale, bias, mean, var = (one.reshape(*one.shape, *behind) for one in (scale, bias, mean, var))
        return (scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype)


class Loop(OpRun):
    """Repeats the body as the standard says. That of the evaluator never enters a loop whose condition is left out,
    joins scan outputs of two axes and more along an axis that they have, and fails if no turn made one (onnx 1.23)."""

    op_domain = ""
    body: Any
    """Evaluates the body; `OpRun` makes both from the attribute."""
    _run_body: Any

    def need_context(self) -> bool:
        return True

    def _run(
        self, count: Any, cond: Any, *args: Any, context: Any = None, body: Any = None, **rest: Any
    ) -> tuple[Any, ...]:
        names, results = self.body.input_names, self.body.output_names
        states = list(args)
        scanned = [list[Any]() for _ in results[1 + len(states) :]]
        turn, goes_on = 0, cond is None or bool(np.all(cond))
        while goes_on and (count is None or turn < np.asarray(count).item()):
            given = dict(zip(names, [np.array(turn, np.int64), np.array(True), *states], strict=True))
            made = self._run_body({**(context or {}), **given}, **rest)
            goes_on, states = bool(np.all(made[0])), list(made[1 : 1 + len(states)])
            for rows, one in zip(scanned, made[1 + len(states) :], strict=True):
                rows.append(one)
            turn += 1
        joined = [
            np.stack(rows) if rows else self._without_turn(name)
            for name, rows in zip(results[1 + len(states) :], scanned, strict=True)
        ]
        return self._check_and_fix_outputs((*states, *joined))

    def _without_turn(self, name: str) -> Any:
        graph = next(one.g for one in self.onnx_node.attribute if one.name == "body")
        held = next(one.type.tensor_type for one in graph.output if one.name == name)
        if not held.HasField("shape"):
            raise ValueError(
                f"the loop ran no iteration that computes the scan output {name!r}, and the body does not "
                "declare its shape"
            )
        sizes = [size.dim_value for size in held.shape.dim]
        return np.zeros((0, *sizes), onnx.helper.tensor_dtype_to_np_dtype(held.elem_type))


_OWN: list[type[OpRun]] = [Flatten, BatchNormalization, Loop]
"""Lists the operators that take the place of those of the evaluator."""


class Evaluator(Session):
    """Runs a session in this process, without limits. Used in the child."""

    provider = "reference"

    def __init__(self, model: ir.Model) -> None:
        self.signature = signature(model)
        try:
            self._evaluator = _evaluator(model)
        except Exception as error:
            raise _failed(error) from error

    def run(self, feeds: Feeds) -> Outputs:
        feeds = _feeds.with_maps(feeds, self.signature)
        _feeds.check(feeds, self.signature)
        maps = {port.name for port in self.signature.inputs if port.kind == "map" and not port.many}
        given = {name: to_map(value) if name in maps else _text(value) for name, value in feeds.items()}
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, given)
        except Exception as error:
            raise _feeds.conflict(feeds, self.signature) or _failed(error) from error
        return {port.name: _owned(value) for port, value in zip(self.signature.outputs, results, strict=True)}


def _evaluator(model: ir.Model) -> ReferenceEvaluator:
    proto = model_message.of_model(in_memory(model))
    if model.opset_imports.get("", _first_opsets.NEWEST + 1) > _first_opsets.NEWEST:
        return ReferenceEvaluator(proto, new_ops=_OWN)
    return ReferenceEvaluator(_first_opsets.readable(proto), new_ops=[*_OWN, *_first_opsets.FORMS])


def read(path: Path, weights: Path | None) -> ir.Model:
    """Reads a model from a file that onnxsmith wrote. `weights` is the folder of its external data, if the data lies in
    another folder than the model."""
    if weights is None:
        return load(path)
    return external.read(onnx.load(path, load_external_data=False), weights / path.name, outside=())


def traced(path: Path, feeds: Feeds) -> Outputs:
    """Returns every value of the main graph that can be computed, by name. Skips a node that fails, and nodes that
    depend on it.

    Raises:
        OnnxsmithError: `runtime/failed` if the evaluator lacks an operator, because it then cannot prepare the model.
    """
    try:
        evaluator = _evaluator(load(path))
    except Exception as error:
        raise _failed(error) from error
    results: dict[str, Any] = {"": None, **evaluator.rt_inits_, **{name: _text(v) for name, v in feeds.items()}}
    found: Outputs = {}
    with np.errstate(all="ignore"):
        for node in evaluator.rt_nodes_:
            if not all(name in results for name in node.input):
                continue
            try:
                given = [results[name] for name in node.input]
                made = node.run(*given, context=results) if node.need_context() else node.run(*given)
            except Exception:  # noqa: BLE001 — failing models are the purpose here; other nodes may still run
                continue
            for name, value in zip(node.output, made, strict=False):
                results[name] = value
                if name:
                    found[name] = _owned(value)
    return found


def _text(value: Value) -> Value:
    """Returns strings as an array of Python strings, the only form that the evaluator returns."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    if value is None or value.dtype.kind not in "OUS":
        return value
    texts = np.empty(value.shape, dtype=object)
    for place, item in np.ndenumerate(value):
        texts[place] = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
    return texts


def _owned(value: object) -> Value:
    """Returns the value as an array that the caller owns. The evaluator also returns numpy scalars, and its own inputs
    and weights."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_owned(item) for item in value]
    if isinstance(value, dict):
        return of_map(value)
    return np.array(value)


def _failed(error: Exception) -> Exception:
    return problem(
        "runtime/failed",
        "the reference evaluator refused or failed",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="the reference evaluator does not have every operator; try --runtime onnxruntime",
    )
