"""Exports one network in every way that the corpus holds; run in a process of its own for each network.

    python benchmarks/models/exporting.py NAME FOLDER

Writes FOLDER/<way>/NAME_<static|dynamic>.onnx, and prints a JSON line for each: way, sizes, seconds, and the error of
an export that torch could not do.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from models.architectures import Network, build

WAYS: dict[str, dict[str, Any]] = {
    "raw": {"dynamo": True, "optimize": False, "external_data": False, "verbose": False},
    "default": {"dynamo": True, "external_data": False, "verbose": False},
    "ts": {"dynamo": False},
}
"""The new exporter as it translates, the new exporter as it is used, and the older one."""


def arguments(network: Network, way: str, dynamic: bool) -> dict[str, Any]:
    """What `torch.onnx.export` is told about names and open axes."""
    named = {"input_names": list(network.inputs)}
    if not dynamic:
        return named
    if way == "ts":
        return {**named, "dynamic_axes": network.dynamic}
    return {**named, "dynamic_shapes": tuple(network.dynamic.get(name) for name in network.inputs)}


def export(name: str, way: str, dynamic: bool, target: Path) -> str | None:
    """Writes the file; gives what torch said when it could not."""
    network = build(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with torch.no_grad():
            torch.onnx.export(
                network.module,
                tuple(network.inputs.values()),
                target,
                **WAYS[way],
                **arguments(network, way, dynamic),
            )
    except Exception as error:  # noqa: BLE001 — whatever stops an export is listed, and the others go on
        target.unlink(missing_ok=True)
        cause = error.__cause__ or error
        lines = str(cause).strip().splitlines() or [""]
        return f"{type(cause).__name__}: {lines[0]}"[:300]
    return None


def main() -> None:
    """Exports what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for way in WAYS:
        for dynamic in (False, True):
            sizes = "dynamic" if dynamic else "static"
            target = given.folder / way / f"{given.name}_{sizes}.onnx"
            start = time.monotonic()
            error = None if target.exists() else export(given.name, way, dynamic, target)
            line = {"way": way, "name": given.name, "sizes": sizes, "seconds": round(time.monotonic() - start, 1)}
            print(json.dumps({**line, "error": error}), flush=True)


if __name__ == "__main__":
    main()
