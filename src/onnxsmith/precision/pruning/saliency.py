"""Reads the saliency of a torch module's parameters, and assigns it to the stored tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.precision.pruning.torch_names import Parameter, parameters
from onnxsmith.verification.metrics.base import Floats

Saliency = Mapping[str, Floats]


def read(given: str | Path | Mapping[str, Any] | None, by: str) -> Saliency:
    """Reads the saliency by name of the parameter, from an `.npz` or a mapping to arrays: numbers of 0 or more, in the
    shape of the parameter. Returns an empty mapping for None.

    Raises:
        OnnxsmithError: `prune/saliency` if it cannot be read, if the measure `by` needs a saliency and there is none,
            or if it does not use one.
    """
    if (given is None) == (by == "first-order"):
        raise _unfit(
            "the measure first-order needs a saliency" if given is None else f"the measure {by} reads no saliency",
            "--saliency saliency.npz" if given is None else f"--by {by}",
            "give --by first-order --saliency FILE; only torch has the gradients that it is made of",
        )
    if given is None:
        return {}
    where = str(given) if isinstance(given, str | Path) else "the given mapping"
    arrays = _arrays(Path(given)) if isinstance(given, str | Path) else dict(given)
    return {name: _checked(name, array, where) for name, array in arrays.items()}


def of_initializers(model: ir.Model, saliency: Saliency, places: Moved | None = None) -> dict[str, Floats]:
    """Returns the saliency of each initializer that is a parameter, in the axes of the initializer. If several
    parameters became one initializer, their saliencies are added. For weights whose elements were moved, `places` leads
    to the parameters.

    Raises:
        OnnxsmithError: `prune/saliency` if a shape is not that of the parameter.
    """
    known = parameters(model)
    found: dict[str, Floats] = {}
    for name in places.results if places is not None else ():
        assert places is not None
        sources = places.sources(name)
        if all(source in saliency for source in sources):
            for source in sources:
                _refuse_shape(source, source, saliency[source].shape, places.shapes[source])
            found[name] = places.made(name, lambda source: saliency[source])
    for name, value in model.graph.initializers.items():
        for one in (known.get(name) or [Parameter(name)]) if name not in found else ():
            own = saliency.get(one.name)
            if own is None or value.shape is None or one.is_part:
                continue
            turned = own.T if one.is_transposed else own
            if one.is_vector and own.size == math.prod(value.shape.numpy()):
                turned = own.reshape(tuple(value.shape.numpy()))
            _refuse_shape(one.name, name, turned.shape, tuple(value.shape.numpy()))
            found[name] = found[name] + turned if name in found else turned
    return found


def _refuse_shape(parameter: str, name: str, shape: tuple[int, ...], stored: tuple[int, ...]) -> None:
    """Refuses a saliency with another shape than the stored tensor. `shape` is in the axes of the stored tensor."""
    if shape != stored:
        raise _unfit(
            "the saliency has another shape than the parameter",
            f"{parameter}: {list(shape)}, the model has {list(stored)} as {name}",
            "make it of the module that the model was exported from",
        )


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise _unfit(
            "the saliency cannot be read", f"{path}: {error}"[:200], "write it with numpy.savez, an array a parameter"
        ) from error


def _checked(name: str, array: Any, where: str) -> Floats:
    found = np.asarray(array)
    if found.dtype.kind not in "fiu" or not np.isfinite(found).all() or (found < 0).any():
        raise _unfit(
            "a saliency is no number of 0 or more",
            f"{where}, {name}",
            "give squares of weight times gradient; a loss that is no number has no gradient",
        )
    return found.astype(np.float64)


def _unfit(what: str, where: str, fix: str) -> OnnxsmithError:
    return problem("prune/saliency", what, where=where, fix=fix)
