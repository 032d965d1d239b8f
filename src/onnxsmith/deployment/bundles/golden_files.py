"""Writes golden data as files that every language reads: raw little-endian tensors, and a manifest in JSON.

Raw bytes hold every dtype, even bfloat16; strings and the structure of lists and maps are in the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from onnxsmith.base.folders import OwnPath
from onnxsmith.deployment.bundles.content import NUMPY
from onnxsmith.deployment.bundles.golden import Case
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes._dtypes import name_of

FOLDER = "golden"
MANIFEST = "manifest.json"
Keep = Callable[[str, bytes], str]
"""Stores the bytes of a tensor under a wished name, and returns the name that the description has."""


def write(cases: tuple[Case, ...], interface: Signature, folder: OwnPath) -> dict[str, Any]:
    """Writes `golden/` into the folder of a bundle, and returns the manifest."""
    target = OwnPath(folder / FOLDER)
    target.mkdir()
    keep = partial(_into, target)
    maps = {port.name: port.many for port in (*interface.inputs, *interface.outputs) if port.kind == "map"}
    written = []
    for number, case in enumerate(cases):
        inputs = [
            {"name": name, **described(_with_maps(name, value, maps), keep, f"{number}_input_{at}")}
            for at, (name, value) in enumerate(case.inputs.items())
        ]
        outputs = [
            {
                "name": name,
                "tolerance": case.tolerances.get(name),
                "random": name in case.random,
                **described(
                    _with_maps(name, value, maps), None if name in case.random else keep, f"{number}_output_{at}"
                ),
            }
            for at, (name, value) in enumerate(case.outputs.items())
        ]
        written.append({"label": case.label, "sizes": dict(case.sizes), "inputs": inputs, "outputs": outputs})
    manifest = {"format": 1, "cases": written}
    (target / MANIFEST).write_bytes((json.dumps(manifest, indent=1) + "\n").encode())
    return manifest


def _with_maps(name: str, value: Any, maps: Mapping[str, bool]) -> Any:
    """Returns the value with dictionaries in place of maps, which runtimes send as lists of keys and values."""
    if name not in maps or value is None:
        return value
    if maps[name]:
        return [dict(zip(keys.tolist(), held.tolist(), strict=True)) for keys, held in value]
    keys, held = value
    return dict(zip(keys.tolist(), held.tolist(), strict=True))


def described(value: Any, keep: Keep | None, name: str = "") -> dict[str, Any]:
    """Describes a value as plain data, and stores its bytes with `keep`. Without `keep`, describes only dtypes and
    shapes, because random values would make each copy different.

    Raises:
        KeyError: for a dtype that ONNX lacks.
    """
    if value is None:
        return {"kind": "absent"}
    if isinstance(value, list):
        return {"kind": "sequence", "items": [described(item, keep, f"{name}_{at}") for at, item in enumerate(value)]}
    if isinstance(value, dict):
        if keep is None:
            return {"kind": "map", "pairs": []}
        pairs = [[_plain(key), _plain(item)] for key, item in value.items()]
        return {"kind": "map", "pairs": pairs}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        texts = [_text(item) for item in array.ravel().tolist()] if keep is not None else None
        return {"kind": "tensor", "dtype": "string", "shape": list(array.shape), "strings": texts}
    dtype = name_of(array.dtype)
    if keep is None:
        return {"kind": "tensor", "dtype": dtype, "shape": list(array.shape), "file": None}
    return {"kind": "tensor", "dtype": dtype, "shape": list(array.shape), "file": keep(name, _raw(array, dtype))}


def _raw(array: np.ndarray[Any, Any], dtype: str) -> bytes:
    """Returns the elements with their least byte first. Dtypes that numpy lacks have one byte, except bfloat16."""
    bits = array.view(np.uint16) if dtype == "bfloat16" else array
    wanted = np.dtype(NUMPY[dtype]).newbyteorder("<") if dtype in NUMPY else bits.dtype
    return np.ascontiguousarray(bits).astype(wanted, copy=False).tobytes()


def _into(folder: OwnPath, name: str, data: bytes) -> str:
    (folder / f"{name}.bin").write_bytes(data)
    return f"{name}.bin"


def _text(item: Any) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def _plain(item: Any) -> Any:
    return item.item() if isinstance(item, np.generic) else item
