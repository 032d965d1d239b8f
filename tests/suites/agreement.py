"""Holds a model and what simplifying makes of it to each other: same answers, valid, same interface, at rest.

Both run on onnxruntime, without its own optimisations, and on the reference evaluator. Nothing checks the inputs first,
so that they may be such as a careless caller gives. What a runtime refuses to do for the original says nothing; what it
does for the original it has to do for the simplified model, to the bit, unless a rule fired that says otherwise.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.dims import evaluate
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.optimizer.rules.base import Exactness, Rule
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.optimizer.simplify import simplify
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.value_comparison import difference, is_float
from tests.suites.pool import Pooled

Values = Mapping[str, Any]
Answer = dict[str, Any] | str
"""Outputs by name, or why there are none."""
NEWEST_IR = 13
"""The newest IR version that the oldest onnxruntime we take reads; what changed since is no matter of computing."""

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-40, 88.8, -104.0, 65520.0, 2.5)
WHOLE = (0, 1, -1, 2, -2, 3, -7, 100, 127, -128)


@dataclass(frozen=True)
class Simple:
    """A simplified model and what was done."""

    model: ir.Model
    part: Simplification

    def ops(self) -> list[str]:
        """The main graph's operators, in order, without Constant."""
        return [node.op_type for node in self.model.graph if node.op_type != "Constant"]

    def fired(self) -> set[str]:
        """The rules and steps that changed something."""
        return {entry.rule for entry in self.part.fired}


@dataclass(frozen=True)
class Trap:
    """A model that a careless rewrite gets wrong, and inputs that show it; see `assert_harmless`.

    `keeps` are operators that have to be left in the main graph, as often as they stand here. `runs` is False for a
    model that perhaps no runtime takes; it still has to be valid and at rest. `tensors` turn inputs into initializers,
    for dtypes whose numbers ONNX text cannot say. `runtimes` are those that are asked; one that is known to be wrong on
    the original is not.
    """

    text: str
    feeds: Sequence[Values] = ()
    opset: int = 20
    sizes: Sequence[int] = (2, 3)
    random: bool = False
    keeps: str = ""
    runs: bool = True
    tensors: Values = field(default_factory=dict)
    runtimes: str = "onnxruntime, the reference"

    def check(self) -> Simple:
        """Holds simplifying to it."""
        model = read(self.text, self.opset)
        for name, array in self.tensors.items():
            value = next(value for value in model.graph.inputs if value.name == name)
            model.graph.inputs.remove(value)
            value.const_value = ir.tensor(array, name=name)
            model.graph.register_initializer(value)
        simple = assert_harmless(
            model, self.feeds, sizes=self.sizes, random=self.random, runtimes=self.runtimes, runs=self.runs
        )
        lost = Counter(self.keeps.split()) - Counter(simple.ops())
        assert not lost, f"{lost} of {simple.ops()}"
        return simple


def read(text: str, opset: int = 20) -> ir.Model:
    """The model that a text describes; a line of versions is put in front where it has none."""
    if not text.lstrip().startswith("<"):
        text = f'<ir_version: {8 if opset < 20 else 10}, opset_import: ["": {opset}]> g {text}'
    return from_text(text)


def assert_harmless(
    model: ir.Model,
    feeds: Sequence[Values] = (),
    *,
    sizes: Sequence[int] = (2, 3),
    named: Sequence[Mapping[str, int]] = (),
    random: bool = False,
    runtimes: str = "onnxruntime, the reference",
    runs: bool = True,
    skip: Sequence[str] = (),
) -> Simple:
    """Simplifies the model and holds it to everything above, on `feeds` and on some made for each of the `sizes`, or
    with the symbols as large as `named`.

    With `random`, answers are held to each other by dtype and shape only.
    """
    before: onnx.ModelProto = ir.to_proto(model)
    made, part = simplified(model, skip=skip)
    simple = Simple(made, part)
    after: onnx.ModelProto = ir.to_proto(made)
    assert ir.to_proto(model) == before, "the model that was given has changed"
    assert_sound(before, after, skip)
    compare = _same_kind if random else _Comparison(model, part)
    answered: list[str] = []
    for runtime in runtimes.split(", "):
        run = RUNNERS[runtime]
        with run(before) as old, run(after) as new:
            for values in (*feeds, *made_feeds(model, sizes, named)):
                wanted = old(values)
                if isinstance(wanted, str):
                    answered.append(f"{runtime}: {wanted}")
                    continue
                found = new(values)
                assert not isinstance(found, str), f"{runtime} ran it before, and now: {found}\n{_shown(made)}"
                reason = compare(wanted, found, runtime, values)
                assert not reason, f"{runtime}: {reason}\ninputs {dict(values)}\n{_shown(made)}"
                answered.append("")
    assert "" in answered or not runs, f"no runtime takes the original: {sorted(set(answered))}"
    return simple


def assert_sound(before: onnx.ModelProto, after: onnx.ModelProto, skip: Sequence[str] = ()) -> None:
    """The checker takes it, the interface is what it was, and a second run changes not a byte."""
    onnx.checker.check_model(after)
    for what in ("input", "output"):
        old, new = (list(getattr(proto.graph, what)) for proto in (before, after))
        assert old == new, f"an {what} of the graph has changed"
    result = simplify(after, verify=False, skip=skip)
    assert result.model is not None
    again: onnx.ModelProto = ir.to_proto(result.model)
    if again.SerializeToString(deterministic=True) != after.SerializeToString(deterministic=True):
        fired = [f"{entry.rule} at {entry.where}" for entry in result.report.part(Simplification).fired]
        raise AssertionError(f"a second run changes it: {fired}\n{_shown(result.model)}")


def _shown(model: ir.Model) -> str:
    return str(onnx.printer.to_text(ir.to_proto(model)))[:4000]


@contextmanager
def on_onnxruntime(model: onnx.ModelProto) -> Iterator[Callable[[Values], Answer]]:
    """Runs it in the product's child process, as the graph stands in the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(readable(model).SerializeToString())
        child = Pooled("onnxsmith.runtimes._onnxruntime_host", "main", what="onnxruntime")
        request = {
            "do": "prepare",
            "session": 1,
            "path": str(path),
            "provider": "cpu",
            "optimization": "disable",
            "threads": 1,
        }
        try:
            refusal = ""
            try:
                child.ask(request)
            except OnnxsmithError as error:
                refusal = str(error.problem)

            def run(values: Values) -> Answer:
                if refusal:
                    return refusal
                try:
                    return child.ask({"do": "run", "session": 1}, dict(values))[1]
                except OnnxsmithError as error:
                    return str(error.problem)

            yield run
        finally:
            child.close()


def readable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with an IR version that every onnxruntime reads."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, NEWEST_IR)
    return copy


@contextmanager
def on_reference(model: onnx.ModelProto) -> Iterator[Callable[[Values], Answer]]:
    """Runs it on the reference evaluator."""
    names = [value.name for value in model.graph.output]
    refusal = ""
    try:
        evaluator = ReferenceEvaluator(model)
    except Exception as error:  # noqa: BLE001 — whatever it raises, it does not run the model
        refusal = repr(error)

    def run(values: Values) -> Answer:
        if refusal:
            return refusal
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return dict(zip(names, evaluator.run(None, dict(values)), strict=True))
        except Exception as error:  # noqa: BLE001 — as above
            return repr(error)

    yield run


RUNNERS = {"onnxruntime": on_onnxruntime, "the reference": on_reference}


def made_feeds(model: ir.Model, sizes: Sequence[int], named: Sequence[Mapping[str, int]] = ()) -> Iterator[Values]:
    """Ordinary and special values, with every symbolic dimension at one size and with all at different ones, or with
    each as large as `named`."""
    ports = signature(model).required()
    if any(port.kind != "tensor" or port.shape is None for port in ports):
        return
    symbols = signature(model).symbols()
    wanted = [dict.fromkeys(symbols, size) for size in sizes]
    if named:
        wanted = [dict(sizes_) for sizes_ in named]
    elif len(symbols) > 1:
        wanted.append({symbol: 2 + index for index, symbol in enumerate(symbols)})
    for (seed, known), special in itertools.product(enumerate(wanted if symbols else [{}]), (False, True)):
        values = {}
        for index, port in enumerate(ports):
            rng = np.random.default_rng([seed, index])
            values[port.name] = _values(port.dtype, _shape(port.shape or (), known), rng, special)
        yield values


def _shape(dims: Sequence[int | str], known: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, known) or 0 for dim in dims)


def _values(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, special: bool) -> Any:
    if dtype == "string":
        return rng.choice(np.array(["a", "", "onnx", "\u00e4"], dtype=object), shape)
    kind = ir.DataType[dtype.upper()].numpy()
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    count = math.prod(shape)
    if ir.DataType[dtype.upper()].is_integer():
        pool = WHOLE if special else (0, 1, 2, 3)
        info = ml_dtypes.iinfo(kind)
        edges = (int(info.min), int(info.max)) if special else ()
        fitting = [number for number in (*pool, *edges) if info.min <= number <= info.max]
        return np.array([fitting[at] for at in rng.integers(0, len(fitting), count)]).astype(kind).reshape(shape)
    with np.errstate(all="ignore"):
        if special:
            return np.array(SPECIAL)[rng.permutation(max(count, 16))[:count] % 16].astype(kind).reshape(shape)
        return np.asarray(rng.standard_normal(shape)).astype(kind)


def _same_kind(wanted: dict[str, Any], found: dict[str, Any], *_: object) -> str:
    for name, value in wanted.items():
        old, new = np.asarray(value), np.asarray(found[name])
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            return f"{name} was {old.dtype}{list(old.shape)} and is {new.dtype}{list(new.shape)}"
    return ""


def _is_huge(value: Any) -> bool:
    """Whether an array of floats goes near the end of float's range, or beyond."""
    return isinstance(value, np.ndarray) and value.dtype == np.float32 and not bool((np.abs(value) < 1e30).all())


class _Comparison:
    """How exactly a simplified model has to answer: as exactly as the rules that fired say."""

    def __init__(self, model: ir.Model, part: Simplification) -> None:
        rules = rooms.members("onnxsmith.optimizer.rules", Rule)
        fired = {entry.rule for entry in part.fired}
        self._exactness = max((rules[name].exactness for name in fired & set(rules)), default=Exactness.BITWISE)
        self._folded = "fold/constant" in fired
        shaped, _ = inferred(model)
        self._tolerances = {name: rounding.tolerance for name, rounding in roundings(shaped).items()}

    def __call__(self, wanted: dict[str, Any], found: dict[str, Any], runtime: str, values: Values) -> str:
        huge = any(_is_huge(value) for value in values.values())
        loose = self._exactness is Exactness.REASSOCIATES or (self._folded and runtime == "the reference")
        for name, value in wanted.items():
            reason = self._near(value, found[name], self._tolerances[name], huge) if loose else ""
            reason = reason or ("" if loose else self._exactly(value, found[name]))
            if reason:
                return f"{name}: {reason}"
        return ""

    def _near(self, wanted: Any, found: Any, tolerance: float, huge: bool) -> str:
        """Where rounding may differ, so may what overflows: but what was finite stays near, and finite unless the
        inputs are `huge`, whose sums overflow in one order and not in another."""
        if isinstance(wanted, np.ndarray) and isinstance(found, np.ndarray) and wanted.shape == found.shape:
            old, new = np.asarray(wanted), np.asarray(found)
            if is_float(old) and old.dtype == new.dtype:
                finite = np.isfinite(old.astype(np.float64))
                if huge:
                    finite &= np.isfinite(new.astype(np.float64))
                return difference(old[finite], new[finite], tolerance).reason
        return difference(wanted, found, tolerance).reason

    def _exactly(self, wanted: Any, found: Any) -> str:
        if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
            return next((reason for pair in zip(wanted, found, strict=True) if (reason := self._exactly(*pair))), "")
        reason = difference(wanted, found, 0.0).reason
        if reason or wanted is None or self._exactness is not Exactness.BITWISE:
            return reason
        old, new = np.asarray(wanted), np.asarray(found)
        if not isinstance(wanted, list) and is_float(old) and (np.signbit(old) != np.signbit(new))[old == 0].any():
            return "the sign of a zero has changed"
        return ""
