"""Tells for which nodes a runtime has CPU kernels, and which opset keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from onnxsmith.base.settings import Verify
from onnxsmith.graph.structure import schema, walk
from onnxsmith.runtimes.base import Runtime, default, get

ONNX = ("", "ai.onnx")
FUSED = ("Attention", "Gelu", "LayerNormalization", "RMSNormalization", "RotaryEmbedding")
"""Standard operators that rules make from several nodes. The opset is chosen so that as many as possible have
kernels."""


def of_check(settings: Verify | None) -> Kernels:
    """Returns the kernels of the runtime that verifies; of the default runtime without a verification.

    Raises:
        OnnxsmithError: `runtime/…` for a runtime that is unknown or not installed.
    """
    return Kernels(get((settings.runtime if settings is not None else None) or default()))


class Kernels:
    """The CPU kernels of one runtime, which loads opsets up to `newest`. A runtime that does not list its kernels
    counts as having all. The list is read when it is needed."""

    def __init__(self, runtime: Runtime, newest: int = 0) -> None:
        self._runtime = runtime
        self.newest = newest
        self._found: dict[str, dict[str, list[dict[str, Any]]] | None] = {}
        self._refusals: dict[tuple[str, int, ir.DataType | None], str] = {}

    def best_opset(self, model: ir.Model, now: int) -> int:
        """Returns the opset, from `now` on, in which no operator of the model loses its kernel and most operators of
        `FUSED` have one; the newest of several."""
        names = {node.op_type for node in walk.all_nodes(model) if node.domain in ONNX}
        kept = [version for version in range(now, self.newest + 1) if not any(self._lost(names, now, version))]
        return max(kept, key=lambda version: (self._fused(version), version), default=now)

    def lacks(self, node: ir.Node, versions: dict[str, int]) -> bool:
        """Whether the runtime has no kernel for the node's operator at its version, or none for its dtype. An unknown
        dtype counts as supported. `versions` are the opset imports."""
        domain = "" if node.domain in ONNX else node.domain
        found = self._of(domain)
        if found is None:
            return False
        version = versions.get(node.domain, versions.get(domain, 1))
        since = self._since(node.op_type, domain, version)
        kernels = [one for one in found.get(node.op_type, ()) if since is None or _fits(one, since)]
        return not any(_takes(one, node, version) for one in kernels)

    def refusal(self, op_type: str, version: int, dtype: ir.DataType | None) -> str:
        """Returns why a standard operator whose first input has this dtype must not be made at an opset: the runtime
        has no kernel for it, and would expand the operator into others. Returns "" if it has a kernel."""
        key = op_type, version, dtype
        if key not in self._refusals:
            self._refusals[key] = self._refusal(*key)
        return self._refusals[key]

    def _refusal(self, op_type: str, version: int, dtype: ir.DataType | None) -> str:
        found, since = self._of(""), self._since(op_type, "", version)
        if found is None:
            return ""
        kernels = [one for one in found.get(op_type, ()) if since is not None and _fits(one, since)]
        if any(_takes_dtype(one, dtype, op_type, "", version) for one in kernels):
            return ""
        which = f" with {dtype.name.lower()}" if kernels and dtype is not None else ""
        return f"{self._runtime.title} has no kernel for {op_type}{which}, and would expand the operator into others"

    def _lost(self, names: set[str], now: int, version: int) -> Iterator[str]:
        """Yields the operators that have a kernel at the opset `now` and none at `version`."""
        for name in names:
            if self._has(name, now) and not self._has(name, version):
                yield name

    def _fused(self, version: int) -> int:
        return sum(self._has(name, version) for name in FUSED)

    def _has(self, name: str, version: int) -> bool:
        found, since = self._of(""), self._since(name, "", version)
        if found is None:
            return True
        return since is not None and any(_fits(one, since) for one in found.get(name, ()))

    def _since(self, name: str, domain: str, version: int) -> int | None:
        known = schema.find(name, domain, version)
        return known.since if known is not None else None

    def _of(self, domain: str) -> dict[str, list[dict[str, Any]]] | None:
        if domain not in self._found:
            listed = self._runtime.kernels(domain)
            by_name: dict[str, list[dict[str, Any]]] = {}
            for one in listed or ():
                by_name.setdefault(one["name"], []).append(one)
            self._found[domain] = None if listed is None else by_name
        return self._found[domain]


def _fits(kernel: dict[str, Any], since: int) -> bool:
    """Whether a kernel implements the operator's form of opset `since`. A kernel without a last version implements only
    its first: onnxruntime does not use it for later forms."""
    first, last = int(kernel["first"]), kernel["last"]
    return first == since or (last is not None and first < since <= int(last))


def _takes(kernel: dict[str, Any], node: ir.Node, version: int) -> bool:
    """Whether a kernel supports the dtype of the node's first input, which binds the schema's type variable; for a
    runtime's own operator `T` or `T1`."""
    value = node.inputs[0] if node.inputs else None
    dtype = value.dtype if value is not None and isinstance(value.type, ir.TensorType) else None
    return _takes_dtype(kernel, dtype, node.op_type, node.domain, version)


def _takes_dtype(kernel: dict[str, Any], dtype: ir.DataType | None, op_type: str, domain: str, version: int) -> bool:
    if dtype is None:
        return True
    known = schema.find(op_type, domain, version)
    variables = (known.inputs[0].type,) if known is not None and known.inputs else ("T", "T1")
    allowed = next((kernel["types"][name] for name in variables if name in kernel["types"]), None)
    from onnxsmith.graph.structure.type_texts import of_dtype

    return allowed is None or of_dtype(dtype) in allowed
