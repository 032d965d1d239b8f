"""Names the inputs and outputs of an exported graph: after forward's arguments and results, or as the user asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.inputs.forward_parameters import signature


def of_inputs(paths: Sequence[tuple[Any, Any]], model: TorchModel) -> list[str | None]:
    """Returns the name of each tensor among the arguments, None for everything else."""
    return [_input(path, model) if isinstance(leaf, torch.Tensor) else None for path, leaf in paths]


def _input(path: tuple[Any, ...], model: TorchModel) -> str:
    """Returns the input name of a path: `x`, or `state.0.hidden` inside an argument."""
    where, first, *rest = path
    if where.idx == 1:
        name = model.names.get(str(first.key), str(first.key))
    else:
        parameters = [p for p in signature(model.module.forward).parameters.values() if p.kind != p.KEYWORD_ONLY]
        variadic = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
        plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        name = plain[first.idx] if first.idx < len(plain) else f"{variadic or 'args'}.{first.idx - len(plain)}"
    return ".".join(filter(None, [name, *map(object_flattening.step, rest)]))


def wished(found: list[str | None], asked: Sequence[str], carried: Sequence[str] = ()) -> list[str | None]:
    """Returns the names of the inputs: the requested names in order, else those in `found`. The inputs `carried`, which
    are no arguments of forward itself, may be left out of the request.

    Raises:
        OnnxsmithError: `export/names` if the numbers differ.
    """
    if not asked:
        return found
    own = [name for name in found if name is not None]
    if len(asked) == len(own) - len(carried):
        asked = [*asked, *carried]
    if len(asked) != len(own) or len(set(asked)) != len(asked):
        raise problem(
            "export/names",
            f"{len(asked)} input names were given, but the model has {len(own)} input tensors",
            fix=f"give {len(own)} different names, in the order of: {', '.join(own)}",
        )
    remaining = iter(asked)
    return [None if name is None else next(remaining) for name in found]


def of_output(path: tuple[Any, ...], given: set[str], result: Any) -> str:
    """Returns the output name of a path in the result; never the name of an input."""
    first, *rest = [*map(object_flattening.step, path)] or [""]
    known = _RESULTS | (_TRANSFORMERS if type(result).__module__.startswith("transformers.") else {})
    plain = ["output", first] if _is_plain(path) else [known.get(first, first)]
    name = ".".join(filter(None, [*plain, *rest]))
    return f"output.{name}" if name in given else name


_RESULTS = {"past_key_values": "present"}
"""Names results that are called otherwise in ONNX graphs: transformers' exports call the new cache `present`."""

_TRANSFORMERS = dict.fromkeys(("cache", "cache_params", "state", "mems"), "present")
"""Does the same for results of transformers' own classes: `past_key_values` is called `cache` since version 5.24, and
recurrent models use the other names."""


def _is_plain(path: tuple[Any, ...]) -> bool:
    """Whether the path gives no name: it is empty or starts with a position."""
    return not path or hasattr(path[0], "idx")
