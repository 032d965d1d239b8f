"""Says why a method changes nothing in a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk
from onnxsmith.precision.methods.base import ASKED, FLOATS, Method, Work

_SHOWN = 3
"""The most weights that a problem names. A choice."""
_WORTH = 2048
"""The least bytes of weights that a method has to change to be advised. A choice: Casts, scales and their names take
some hundred bytes, which would make a file with fewer weights larger."""
_LONG = 600
"""The most characters of the reasons. A choice."""


def nothing(name: str, method: Method, work: Work) -> OnnxsmithError:
    """Makes the problem for a model in which the method changes no node."""
    dtypes = Counter(one.dtype for one in walk.tensors(work.model) if one.dtype in FLOATS and one.nbytes)
    other = next((dtype.name.lower() for dtype, _ in dtypes.most_common() if dtype != ir.DataType.FLOAT), "")
    if other and ir.DataType.FLOAT not in dtypes:
        return problem(
            "quantize/nothing",
            f"the model is in {other}, and {name} is made of float32",
            where=_held(work.model, other),
            why=f"its weights are in {other}",
            fix="start from the float32 model: `onnxsmith inspect MODEL --weights` shows the dtypes"
            + ("; --to int4 takes weights of float16, too" if other == "float16" and name != "int4" else ""),
        )
    left = "; ".join(f"{one.count} {one.op}: {one.why}" for one in method.left(work))
    return problem(
        "quantize/nothing",
        f"no node of the model can become {name}",
        where=_held(work.model, ""),
        why=f"the method changes {method.changes}{method.where}" + (f". {left}"[:_LONG] if left else ""),
        fix=_other(work, name),
    )


def _held(model: ir.Model, dtype: str) -> str:
    """Lists the largest weights, of one dtype if given; or says that there are none."""
    tensors = [one for one in walk.tensors(model) if one.dtype in FLOATS and dtype in ("", one.dtype.name.lower())]
    largest = sorted(tensors, key=lambda one: -one.nbytes)[:_SHOWN]
    listed = ", ".join(
        f"{one.name or 'a Constant'} {one.dtype.name.lower()} {list(one.shape.numpy())}" for one in largest
    )
    return f"its largest weights: {listed}" if listed else "the model has no weights in floats"


def _other(work: Work, name: str) -> str:
    """Suggests a method that makes the model smaller, if there is one."""
    known = rooms.members("onnxsmith.precision.methods", Method)
    is_changed = False
    for other in ("int8", "int4", "float16"):
        stay = known[other].always(work)
        changed = [] if other == name else [one for one in known[other].layers(work) if one.name not in stay]
        if sum(layer.nbytes for layer in changed) >= _WORTH:
            return f"give --to {other}, which changes nodes of this model"
        is_changed = is_changed or bool(changed)
    if is_changed:
        return "keep the model as it is: it has too few weights to become smaller"
    return "keep the model as it is: neither int8, int4 nor float16 changes a node of it"


def everything(name: str, method: Method, why: Mapping[str, str]) -> OnnxsmithError:
    """Makes the problem for a model in which every layer stays. `why` has the reasons by layer."""
    counts = Counter(why.values())
    told = "; ".join(reason if len(counts) == 1 else f"{count} because {reason}" for reason, count in counts.items())
    is_asked = ASKED in counts
    return problem(
        "quantize/nothing",
        f"every layer that could become {name} stays as it is",
        why=told[:_LONG],
        fix="give a shorter keep-list, or another --to" if is_asked else f"give {method.instead}",
    )


def no_method(model: ir.Model, notes: Sequence[str]) -> OnnxsmithError:
    """Makes the problem for a model that no method of `auto` changes. `notes` are the methods' reasons."""
    return problem(
        "quantize/nothing",
        "no method changes this model",
        where=_held(model, ""),
        why="; ".join(notes)[:_LONG],
        fix="keep the model as it is; or give one --to, whose message has the reason and what helps",
    )
