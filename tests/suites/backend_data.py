"""The test cases that the onnx package ships: models with inputs and the outputs that are expected of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
VARIANTS = ("as it is", "all but the first constant", "all constant")
"""What becomes an initializer before the model is simplified."""


@dataclass(frozen=True)
class Case:
    """A model, values for its inputs in their order, what its outputs have to be, and how exactly."""

    name: str
    model: onnx.ModelProto
    feeds: list[Any]
    expected: list[Any]
    rtol: float
    atol: float


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by kind and name. Most are made on the spot, by code of the package, which warns here and there."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(
            case
            for kind in KINDS
            for test in sorted(load_model_tests(kind=kind), key=lambda test: test.name)
            for case in _of(kind, test)
        )


def _of(kind: str, test: Any) -> Iterator[Case]:
    folder = Path(test.model_dir) if test.model_dir is not None else None
    model = test.model if folder is None else onnx.load(folder / "model.onnx")
    sets = (
        test.data_sets if folder is None else [_read(place, model) for place in sorted(folder.glob("test_data_set*"))]
    )
    for index, (feeds, expected) in enumerate(sets):
        name = f"{kind}/{test.name}" + (f"/{index}" if len(sets) > 1 else "")
        yield Case(name, model, [_value(v) for v in feeds], [_value(v) for v in expected], test.rtol, test.atol)


def _read(folder: Path, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    return _files(folder, "input", model.graph.input), _files(folder, "output", model.graph.output)


def _files(folder: Path, what: str, ports: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    found = []
    for index in range(len(list(folder.glob(f"{what}_*.pb")))):
        data = (folder / f"{what}_{index}.pb").read_bytes()
        kind = ports[index].type.WhichOneof("value")
        match kind:
            case "sequence_type":
                found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
            case "optional_type":
                found.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(data)))
            case _:
                found.append(numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return found


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return None if value is None else np.asarray(value)


def variant(case: Case, name: str) -> tuple[onnx.ModelProto, dict[str, Any]] | None:
    """The model with some of its inputs turned into initializers, and what is left to feed; None where there is nothing
    to turn. With all of them constant, each output goes through an Identity, so that all before it may be folded."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    given = {value.name for value in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in given]
    feeds = dict(zip((value.name for value in inputs), case.feeds, strict=True))
    if name == VARIANTS[0]:
        return model, feeds
    turned = [
        value
        for value in inputs[1 if name == VARIANTS[1] else 0 :]
        if value.type.HasField("tensor_type") and feeds[value.name] is not None
    ]
    if not turned:
        return None
    model.ir_version = max(model.ir_version, 4)  # before it, each initializer is an input
    if name == VARIANTS[2] and not any(imported.domain in ("", "ai.onnx") for imported in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("", 20))  # for Identity
    for value in turned:
        model.graph.initializer.append(_tensor(value, feeds.pop(value.name)))
        model.graph.input.remove(value)
    if name == VARIANTS[2]:
        _keep_outputs_apart(model.graph)
    return model, feeds


def _tensor(value: onnx.ValueInfoProto, array: Any) -> onnx.TensorProto:
    if array.dtype.kind in "OUS":
        texts = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel()]
        return onnx.helper.make_tensor(value.name, onnx.TensorProto.STRING, array.shape, texts)
    tensor = numpy_helper.from_array(array, value.name)
    assert tensor.data_type == value.type.tensor_type.elem_type, value.name
    return tensor


def _keep_outputs_apart(graph: onnx.GraphProto) -> None:
    for value in graph.output:
        if not value.type.HasField("tensor_type"):
            continue
        inner = f"{value.name}_inner"
        for node in graph.node:
            for names in (node.input, node.output):
                for index, name in enumerate(names):
                    if name == value.name:
                        names[index] = inner
        graph.node.append(onnx.helper.make_node("Identity", [inner], [value.name]))


def wrong(case: Case, outputs: Sequence[Any]) -> str:
    """Why the outputs are not what is expected, or nothing; comparison and tolerance are those of onnx's own runner."""
    return _wrong(case, case.expected, outputs)


def _wrong(case: Case, expected: Sequence[Any], outputs: Sequence[Any]) -> str:
    if len(outputs) != len(expected):
        return f"{len(outputs)} values, not {len(expected)}"
    for place, (wanted, found) in enumerate(zip(expected, outputs, strict=True)):
        reason = ""
        if isinstance(wanted, list) and isinstance(found, list):
            reason = _wrong(case, wanted, found)
        elif wanted is None or found is None:
            reason = "" if wanted is found else f"it is {found}, not {wanted}"
        else:
            try:
                with np.errstate(all="ignore"):
                    Runner.assert_similar_outputs([wanted], [np.asarray(found)], case.rtol, case.atol)
            except (AssertionError, TypeError) as error:
                reason = " ".join(str(error).split())[:300]
        if reason:
            return f"{place}: {reason}"
    return ""
