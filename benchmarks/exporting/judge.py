"""Is an exported file right? ONNX Runtime beside the module, at other sizes too, by no code of ours."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch.utils import _pytree as pytree

from exporting.suite import Call

_TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-7}
_FLOAT32 = 1e-3
"""Relative to the largest value, or to an element: what torch's own exporter tests allow."""


def judge(call: Call, path: Path) -> str:
    """`right`, `invalid: why` (a runtime does not take the file) or `wrong: why` (it answers otherwise)."""
    if call.opset is not None:
        got = next(one.version for one in onnx.load(path, load_external_data=False).opset_import if not one.domain)
        if got != call.opset:
            return f"wrong: opset {got}, asked for was {call.opset}"
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 — whatever a runtime says
        return f"invalid: {_first(error)}"
    for args, kwargs in [(call.args, call.kwargs), *call.others]:
        found = _held(call, session, args, kwargs)
        if found != "right":
            return found
    return "right"


def _held(call: Call, session: Any, args: Any, kwargs: Mapping[str, Any]) -> str:
    tensors = tensors_in((args, dict(kwargs)))
    given = [_array(tensor) for tensor in tensors]
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = copy.deepcopy((args, dict(kwargs)))
        result = call.module(*fresh[0], **fresh[1])
    wanted = [_array(leaf) for leaf in tensors_in(result)]
    inputs = session.get_inputs()
    if len(inputs) != len(given):
        return f"wrong: {len(inputs)} inputs for {len(given)} tensors"
    try:
        got = session.run(None, {port.name: value for port, value in zip(inputs, given, strict=True)})
    except Exception as error:  # noqa: BLE001 — whatever a runtime says
        return f"invalid: {_first(error)}"
    if len(got) != len(wanted):
        return f"wrong: {len(got)} outputs for {len(wanted)}"
    for index, (a, b) in enumerate(zip(wanted, got, strict=True)):
        why = _differs(a, np.asarray(b), call.random)
        if why:
            return f"wrong: output {index} {why}"
    return "right"


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor in a nest of containers and of objects that hold some, such as caches."""
    found = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif hasattr(leaf, "__dict__") and not callable(leaf):
            found += [tensor for name, held in vars(leaf).items() if name[0] != "_" for tensor in tensors_in(held)]
    return found


def _array(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.bfloat16,):
        tensor = tensor.float()
    return tensor.contiguous().numpy()


def _differs(wanted: Any, got: Any, random: bool) -> str:
    if wanted.dtype != got.dtype:
        return f"is {got.dtype}, not {wanted.dtype}"
    if wanted.shape != got.shape:
        return f"has shape {list(got.shape)}, not {list(wanted.shape)}"
    if random or wanted.size == 0:
        return ""
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(wanted, got) else "has other values"
    tolerance = _TOLERANCE.get(wanted.dtype.name, _FLOAT32)
    finite = wanted[np.isfinite(wanted)]
    scale = min(float(np.abs(finite).max()), 1.0) if finite.size else 0.0
    if np.allclose(wanted, got, rtol=tolerance, atol=tolerance * scale * 0.1, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"differs by {np.nanmax(np.abs(wanted - got)):.3g}"


def _first(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
