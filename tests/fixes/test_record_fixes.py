"""Fixes of problems of verification records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from onnxsmith.cli import application
from tests.fixes.harness import Case, Content, helps, parameters

NEG = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }'
SIMPLIFY = "simplify m.onnx -o s.onnx --record r.json"


def of(
    command: str, act: Callable[[Any], object] = lambda data: None, after: Callable[[], object] = lambda: None
) -> Content:
    """Writes the record of a command, changed by `act`; then `after` changes other files."""

    def write(path: Path) -> None:
        CliRunner().invoke(application.app, command.split())
        data = json.loads(path.read_text())
        act(data)
        path.write_text(json.dumps(data))
        after()

    return write


def other(data: Any) -> None:
    """Makes the record name an output with other bytes, and writes them."""
    Path("s.onnx").write_bytes(Path("s.onnx").read_bytes() + b"\x12\x01p")  # the field producer_name, once more
    from onnxsmith.graph.files import digest

    data["subject"][0]["digest"]["sha256"] = digest.sha256(Path("s.onnx"))


VERIFY = "onnxsmith verify-record r.json"
AGAIN = {"r.json": of(SIMPLIFY)}
CASES = [
    Case("record/not-found", VERIFY, {"m.onnx": NEG}, changes=AGAIN, says=["run the command again with `--record`"]),
    Case(
        "record/unreadable",
        VERIFY,
        {"m.onnx": NEG, "r.json": "{}"},
        changes={"r.json": lambda path: (path.unlink(), of(SIMPLIFY)(path))},  # type: ignore[operator]
        says=["run the command again with `--record`"],
    ),
    Case(
        "record/file-changed",
        VERIFY,
        {"m.onnx": NEG, "r.json": of(SIMPLIFY), "m2": lambda path: path.with_name("m.onnx").write_bytes(b"damaged")},
        changes={"m.onnx": NEG},
        says=["restore the recorded file"],
    ),
    Case(
        "record/file-missing",
        VERIFY,
        {"m.onnx": NEG, "r.json": of(SIMPLIFY), "m2": lambda path: path.with_name("m.onnx").unlink()},
        changes={"m.onnx": NEG},
        says=["restore the file"],
    ),
    Case("record/replaced", VERIFY, {"m.onnx": NEG, "r.json": of("opset m.onnx 21 -o m.onnx --record r.json")}),
    Case(
        "record/replay-failed",
        VERIFY,
        {"m.onnx": NEG, "r.json": of(SIMPLIFY, lambda data: data["predicate"]["command"].append("--nothing"))},
    ),
    Case(
        "record/changed",
        VERIFY,
        {"m.onnx": NEG, "r.json": of(SIMPLIFY, lambda data: data["predicate"].update(verdict="different"))},
        changes={"r.json": of(SIMPLIFY, lambda data: None)},
        says=["compare it with the first copy"],
    ),
    Case(
        "record/other-bytes",
        VERIFY,
        {"m.onnx": NEG, "r.json": of(SIMPLIFY, other)},
        changes={"r.json": of(SIMPLIFY, lambda data: None)},
        says=["compare it with the first copy"],
    ),
    Case(
        "record/not-written",
        f"onnxsmith {SIMPLIFY}",
        {"m.onnx": b"damaged"},
        changes={"m.onnx": NEG},
        says=["apply the fix of the first problem"],
    ),
    Case(
        "record/patch-file",
        "onnxsmith opset m.onnx 21 -o n.onnx --record p.toml",
        {"m.onnx": NEG},
        by_hand="onnxsmith opset m.onnx 21 -o n.onnx --record p.json",
        says=["--record p.json"],
    ),
]


@pytest.mark.parametrize("case", parameters(CASES))
def test_the_fix_helps(case: Case, tmp_path: Path) -> None:
    helps(case, tmp_path)
