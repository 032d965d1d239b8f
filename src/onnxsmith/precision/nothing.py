"""Says why a method changes nothing in a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.precision.methods.base import ASKED, FLOATS, Method, Work
from onnxsmith.problem import OnnxsmithError, problem

_LONG = 600
"""Characters of the reasons. A choice."""


def nothing(name: str, method: Method, work: Work) -> OnnxsmithError:
    """The problem of a model in which the method changes no node."""
    dtypes = Counter(one.dtype for one in walk.tensors(work.model) if one.dtype in FLOATS and one.nbytes)
    other = next((dtype.name.lower() for dtype, _ in dtypes.most_common() if dtype != ir.DataType.FLOAT), "")
    if other and ir.DataType.FLOAT not in dtypes:
        return problem(
            "quantize/nothing",
            f"the model is in {other}, and {name} is made of float32",
            why=f"its weights are in {other}",
            fix="start from the float32 model"
            + ("; --to int4 takes weights of float16, too" if other == "float16" and name != "int4" else ""),
        )
    left = "; ".join(f"{one.count} {one.op}: {one.why}" for one in method.left(work))
    return problem(
        "quantize/nothing",
        f"no node of the model can become {name}",
        why=f"the method changes {method.changes}{method.where}" + (f". {left}"[:_LONG] if left else ""),
        fix="try another --to",
    )


def everything(name: str, method: Method, why: Mapping[str, str]) -> OnnxsmithError:
    """The problem of a model of which each layer stays, with the reasons by layer."""
    counts = Counter(why.values())
    told = "; ".join(reason if len(counts) == 1 else f"{count} because {reason}" for reason, count in counts.items())
    is_asked = ASKED in counts
    return problem(
        "quantize/nothing",
        f"every layer that could become {name} stays as it is",
        why=told[:_LONG],
        fix="give a shorter keep-list, or another --to" if is_asked else f"give {method.instead}",
    )
