"""Prints the `[[operators]]` tables of the profile `webgpu` from onnxruntime-web's table of operators.

    npm pack onnxruntime-web && tar xzf onnxruntime-web-*.tgz
    python tools/webgpu_profile.py package/docs/webgpu-operators.md

The part of the profile above the first `[[operators]]` is written by hand. Operators of the domain com.ms.internal.nhwc
and rows that are no ONNX operators (MemcpyFromHost, SimplifiedLayerNormalization of ai.onnx) are left out: onnxruntime
makes them itself.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from onnxsmith.graph.structure import schema

CONDITIONS = {
    "conv3d": ("ranks = { X = [3, 4] }", ""),
    "convtranspose3d": ("ranks = { X = [3, 4] }", ""),
    "no gpu kernel": ("", "runs on the CPU"),
    "align_corners": (
        "",
        "with the coordinate transformation mode align_corners, making the tensor smaller is not supported",
    ),
    "mask and past": ("", "masks and past and present keys and values are not implemented"),
}
"""What a comment of the table means: a condition, and a note."""
DECISIVE = ("align_corners", "mask and past")

INDENT = "    "


def main() -> None:
    """Reads the table that the command line names."""
    plain: dict[tuple[int, int | None], list[str]] = {}
    special = []
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if len(row) != 3 or "(" not in row[1]:
            continue
        for domain, versions in re.findall(r"([\w.]+)\(([^)]*)\)", row[1]):
            home = "" if domain == "ai.onnx" else domain
            if home == "com.ms.internal.nhwc" or (not home and not schema.versions(row[0], "")):
                continue
            name = f"{home}::{row[0]}" if home else row[0]
            since, until = span(versions) if not home else (1, None)
            words = [key for key in CONDITIONS if key in row[2].lower()]
            if words:
                special.append(entry([name], since, until, words[-1]))
            else:
                plain.setdefault((since, until), []).append(name)
    texts = [entry(names, *bounds, "") for bounds, names in sorted(plain.items(), key=str)]
    print("\n\n".join([*texts, *special]))


def span(versions: str) -> tuple[int, int | None]:
    """`7-12,13+` is from 7 on: the oldest and the newest version of the operator's schema; None without an end.

    Raises:
        ValueError: if a version between them is missing.
    """
    parts = versions.split(",")
    first = int(re.split(r"[-+]", parts[0])[0])
    last = first - 1
    for part in parts:
        low, _, high = part.rstrip("+").partition("-")
        if int(low) != last + 1:
            raise ValueError(f"the versions {versions} have a gap")
        last = int(high or low)
    return first, None if versions.endswith("+") else last


def entry(names: list[str], since: int, until: int | None, word: str) -> str:
    """One table."""
    condition, note = CONDITIONS.get(word, ("", ""))
    listed = ", ".join(f'"{name}"' for name in names)
    if len(listed) > 100:
        listed = "\n" + textwrap.fill(f"{listed},", 116, initial_indent=INDENT, subsequent_indent=INDENT) + "\n"
    lines = ["[[operators]]", f"names = [{listed}]"]
    lines += [f"since = {since}"] if since > 1 else []
    lines += [f"until = {until}"] if until is not None else []
    lines += [condition] if condition else []
    lines += [f'note = "{note}"'] if note else []
    lines += ["decisive = true"] if word in DECISIVE else []
    return "\n".join(lines)


if __name__ == "__main__":
    main()
