"""Finds private names of other libraries that are reached for outside of `onnxsmith.base.seams`.

    python tools/private_names.py [FOLDER]

A name is private where a part of its path begins with an underscore, as `torch._ops` or `auto._model_mapping` of an
object that was imported. What is replaced with `unittest.mock` or `setattr` in an imported module counts, too. Prints a
line for each and exits with 1 where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from imported_names import dotted_name, imported_names

LIBRARIES = {
    "google", "huggingface_hub", "ml_dtypes", "numpy", "onnx", "onnx_ir", "onnx_shape_inference", "onnxruntime",
    "iree", "nncf", "onnxscript", "openvino", "safetensors", "sympy", "torch", "torchvision", "tract", "transformers",
}  # fmt: skip
HOME = "seams"
SOURCES = Path(__file__).parent.parent / "src" / "onnxsmith"


def main() -> int:
    """Looks through the folder, or all of the package."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES
    found = [one for path in sorted(root.rglob("*.py")) if HOME not in path.parts for one in private_names(path)]
    print("\n".join(found) if found else f"no private name of another library outside of {HOME}/")
    return bool(found)


def private_names(path: Path) -> Iterator[str]:
    """`file:line: name` for each."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aliases = imported_names(tree, _library)
    for node in ast.walk(tree):
        for name in _of(node, aliases):
            yield f"{path}:{getattr(node, 'lineno', 0)}: {name}"


def _of(node: ast.AST, aliases: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module and not node.level and _library(node.module):
        yield from (f"{node.module}.{one.name}" for one in node.names if _is_private(f"{node.module}.{one.name}"))
    elif isinstance(node, ast.Import):
        yield from (one.name for one in node.names if _library(one.name) and _is_private(one.name))
    elif isinstance(node, ast.Attribute):
        path = dotted_name(node)
        first, _, rest = path.partition(".")
        if first in aliases and _is_private(rest.rpartition(".")[2]):
            yield f"{aliases[first]}.{rest}"
    elif isinstance(node, ast.Call):
        path = dotted_name(node.func)
        if path in ("setattr", "mock.patch.object", "patch.object") and node.args:
            owner = dotted_name(node.args[0])
            if owner.partition(".")[0] in aliases:
                yield f"{path}({owner}, …)"


def _library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES


def _is_private(path: str) -> bool:
    return any(part.startswith("_") and not (part.startswith("__") and part.endswith("__")) for part in path.split("."))


if __name__ == "__main__":
    raise SystemExit(main())
