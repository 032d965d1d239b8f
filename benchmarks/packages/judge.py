"""Says whether a file computes what the module does: onnxruntime beside eager PyTorch, by no code of onnxsmith.

A file is `right` when it agrees at the example's sizes and at two other sizes of each dynamic axis, on new values;
`wrong` when it answers otherwise at the example's sizes, or no runtime takes it there; `frozen` when it is right at the
example's sizes only. Where rounding decides the module's own answer, as between two codes that are equally near, a file
is right that agrees with the module in float64.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch.utils import _pytree as pytree

from packages.case import Case, arguments
from packages.exporters import leaves_of

THREADS = 1


def judge(case: Case, files: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """A verdict and its reason for each file, by exporter."""
    module = case.module()
    trials = [(label, given, answer(module, given)) for label, given in case.trials()]
    found = {name: _verdict(path, trials, case.tolerance) for name, path in files.items()}
    if any(one["verdict"] != "right" for one in found.values()):
        trials = [(label, given, _settled(case, given, wanted)) for label, given, wanted in trials]
        found = {
            name: _verdict(path, trials, case.tolerance) if found[name]["verdict"] != "right" else found[name]
            for name, path in files.items()
        }
    return found


def _settled(case: Case, given: Any, wanted: list[np.ndarray]) -> list[np.ndarray]:
    """The module's answer in float64 where the one in float32 is another by more than rounding; else the given one."""
    doubled = pytree.tree_map(lambda leaf: leaf.double() if _is_float(leaf) else leaf, given)
    try:
        exact = [
            two.astype(one.dtype) if one.dtype.kind == "f" else two
            for one, two in zip(wanted, answer(case.module().double(), doubled), strict=True)
        ]
    except Exception:  # noqa: BLE001  # a module that does not run in float64
        return wanted
    return exact if any(map(distance, exact, wanted, [case.tolerance] * len(wanted))) else wanted


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32


def answer(module: torch.nn.Module, given: Any) -> list[np.ndarray]:
    """What eager PyTorch computes: every tensor of the result, in order."""
    args, kwargs = arguments(copy.deepcopy(given))
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = module(*args, **kwargs)
    return [_array(leaf) for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _verdict(path: Path, trials: list[tuple[str, Any, list[np.ndarray]]], tolerance: float) -> dict[str, str]:
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # whatever a runtime says
        return {"verdict": "wrong", "why": f"does not load: {first(error)}"}
    for label, given, wanted in trials:
        why = _differs(session, given, wanted, tolerance)
        if why:
            return {"verdict": "frozen" if label else "wrong", "why": f"{label or 'the example'}: {why}"}
    return {"verdict": "right", "why": ""}


def _differs(session: Any, given: Any, wanted: list[np.ndarray], tolerance: float) -> str:
    """Why the file's answer is another; an input that no result depends on may be missing, if names tell which."""
    arrays = [_array(leaf) for leaf in leaves_of(given)]
    ports = [port.name for port in session.get_inputs()]
    by_name = {f"input_{index}": array for index, array in enumerate(arrays)}
    if isinstance(given, dict):
        by_name |= dict(zip(given, arrays, strict=False))
    if len(ports) == len(arrays):
        feeds = dict(zip(ports, arrays, strict=True))
    elif all(port in by_name for port in ports):
        feeds = {port: by_name[port] for port in ports}
    else:
        return f"{len(ports)} inputs for {len(arrays)} tensors"
    try:
        got = session.run(None, feeds)
    except Exception as error:  # noqa: BLE001  # whatever a runtime says
        return f"does not run: {first(error)}"
    if len(got) != len(wanted):
        return f"{len(got)} outputs for {len(wanted)}"
    for index, (a, b) in enumerate(zip(wanted, got, strict=True)):
        why = distance(a, np.asarray(b), tolerance)
        if why:
            return f"output {index} {why}"
    return ""


def distance(wanted: np.ndarray, got: np.ndarray, tolerance: float) -> str:
    """Why two arrays differ: dtype, shape, or a difference above the tolerance of the largest finite value."""
    if wanted.dtype != got.dtype:
        return f"is {got.dtype}, not {wanted.dtype}"
    if wanted.shape != got.shape:
        return f"has shape {list(got.shape)}, not {list(wanted.shape)}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(wanted, got) else "has other values"
    a, b = wanted.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "has other infinities or NaN"
    if not finite.any():
        return ""
    scale = np.abs(a[finite]).max()
    furthest = np.abs(a[finite] - b[finite]).max()
    return "" if furthest <= tolerance * scale + 1e-7 else f"differs by {furthest:.3g}, largest value {scale:.3g}"


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return tensor.contiguous().numpy()


def first(error: BaseException) -> str:
    """The first sentence of a message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text.partition('. ')[0]}"[:300]
