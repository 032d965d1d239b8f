"""Lists versions of other libraries: the newest that the tests were run with, and the lifetimes of private names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NEWEST_TESTED: Mapping[str, str] = {
    "torch": "2.13.0",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "onnxscript": "0.7.2",
    "onnx-shape-inference": "0.4.0",
    "fast-sugiyama": "0.5.3",
    "numpy": "2.5.5",
    "ml_dtypes": "0.6.0",
    "safetensors": "0.8.0",
    "typer": "0.29.2",
    "rich": "15.0.0",
    "pydantic": "2.14.4",
    "jinja2": "3.1.6",
    "pillow": "13.0.0",
    "protobuf": "7.36.2",
    "sympy": "1.14.0",
    "tomli-w": "1.2.0",
    "onnxruntime": "1.32.0",
    "openvino": "2026.4.1",
    "tract": "0.23.9",
    "iree-base-compiler": "3.13.0",
    "iree-base-runtime": "3.13.0",
    "nncf": "3.4.0",
    "mcp": "2.3.0",
    "mpmath": "1.3.0",
    "cloudpickle": "3.1.3",
}
"""The newest version of each dependency that the tests were run with: the column `newest` of `docs/platforms.md`, and
torch, which has a table of its own there. A test compares the two."""


@dataclass(frozen=True)
class Lifetime:
    """The releases of a library that have a private name. `added` is the first release with the name, `removed` the
    first without it; "" is no bound."""

    added: str = ""
    removed: str = ""

    def includes(self, version: str) -> bool:
        """Whether the version has the name. A preview of a release (`2.14.0a0`) counts as the release."""
        installed = release(version)
        return (not self.added or installed >= release(self.added)) and (
            not self.removed or installed < release(self.removed)
        )


def release(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version: (2, 14, 1) for `2.14.1+cu130`; empty if it does not start with a
    number."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match is not None else ()


def is_newer(version: str, tested: str) -> bool:
    """Whether the first or second number of a version is larger than the tested version's. A newer patch release does
    not count, nor does a version that does not start with a number."""
    return release(version)[:2] > release(tested)[:2]
