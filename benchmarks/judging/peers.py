"""What others would say of two models on the same input: numpy at torch.testing's tolerances, Polygraphy's default."""

from __future__ import annotations

import contextlib
import io
from importlib.util import find_spec
from typing import Any

import numpy as np

from judging.running import Arrays

TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""rtol and atol of torch.testing.assert_close by dtype."""


def allclose(wanted: Arrays, got: Arrays) -> str:
    """`equal` or `different`."""
    return "equal" if all(_close(wanted[name], got.get(name)) for name in wanted) else "different"


def _close(wanted: Any, got: Any) -> bool:
    if got is None or wanted.shape != got.shape or wanted.dtype != got.dtype:
        return False
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(wanted, got))
    rtol, atol = TOLERANCES[wanted.dtype.name]
    return bool(np.allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True))


def polygraphy(wanted: Arrays, got: Arrays) -> str:
    """`equal` or `different`, by `CompareFunc.simple(atol=1e-5, rtol=1e-5)`."""
    from polygraphy.comparator import CompareFunc, IterationResult
    from polygraphy.logger import G_LOGGER

    check = CompareFunc.simple(atol=1e-5, rtol=1e-5)
    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        try:
            found = check(IterationResult(dict(wanted)), IterationResult(dict(got)))
        except Exception:  # noqa: BLE001 — it fails on what it cannot compare
            return "failed"
    return "equal" if found and all(bool(one) for one in found.values()) else "different"


PEERS = {"numpy.allclose": allclose, **({"polygraphy": polygraphy} if find_spec("polygraphy") else {})}
"""Those that are installed."""
