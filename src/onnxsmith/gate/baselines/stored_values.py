"""Turns recorded values into descriptions and bytes, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.base.problem import problem
from onnxsmith.deployment.bundles.golden import Case
from onnxsmith.deployment.bundles.golden_files import described
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import StoredCase, StoredOutput
from onnxsmith.runtimes._dtypes import numpy_dtype


def stored(case: Case, content: Content, not_stored: list[str]) -> StoredCase | None:
    """Stores a case. Adds what has a dtype that cannot be stored to `not_stored`; without one of its inputs a case is
    of no use, and None is returned."""
    inputs, outputs = {}, {}
    for name, value in case.inputs.items():
        try:
            inputs[name] = described(plain(value), content.keep)
        except (KeyError, TypeError, ValueError):
            not_stored.append(f"input {name}, of {case.label}")
            return None
    for name, value in case.outputs.items():
        random = name in case.random
        try:
            held = described(plain(value), None if random else content.keep)
        except (KeyError, TypeError, ValueError):
            not_stored.append(f"output {name}, of {case.label}")
            continue
        outputs[name] = StoredOutput(held, case.tolerances.get(name), random)
    return StoredCase(case.label, dict(case.sizes), inputs, outputs)


def plain(value: Any) -> Any:
    """Returns a value as a description gives it back: maps as lists of keys and values, texts as `str`."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        texts = [item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
                 for item in value.ravel().tolist()]  # fmt: skip
        return _texts(texts, value.shape)
    return value


def restored(value: Mapping[str, Any], content: Content) -> Any:
    """Returns the value of a description; of a random output, zeros of its dtype and shape.

    Raises:
        OnnxsmithError: `gate/baseline-data` if description and bytes do not fit.
    """
    try:
        return _restored(value, content)
    except (KeyError, ValueError, TypeError) as error:
        raise problem(
            "gate/baseline-data",
            "a recorded value does not fit its description",
            where=f"{value.get('dtype')} {value.get('shape')}",
            why=f"{type(error).__name__}: {error}",
            fix="restore both files of the baseline from their source; or remove them and record the models again",
        ) from error


def _restored(value: Mapping[str, Any], content: Content) -> Any:
    if value["kind"] == "absent":
        return None
    if value["kind"] == "sequence":
        return [_restored(item, content) for item in value["items"]]
    dtype, shape = value["dtype"], tuple(value["shape"])
    if dtype == "string":
        texts = value["strings"]
        return _texts(texts, shape) if texts is not None else np.zeros(shape, object)
    kind = numpy_dtype(dtype)
    if value["file"] is None:
        return np.zeros(shape, kind)
    data = np.frombuffer(content.held[value["file"]], np.dtype(np.uint16) if dtype == "bfloat16" else kind)
    return data.view(kind).reshape(shape).copy()


def _texts(texts: list[str], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)
