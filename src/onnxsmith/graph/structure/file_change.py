"""Writes the one line of Python that changes a field of a model's file, for files that onnxsmith does not load."""

from __future__ import annotations

import shlex
from pathlib import Path


def message_change(place: str, change: str) -> str:
    """Returns a command that reads the message `m` of a file, carries out `change`, and writes the file again. Data
    files stay as they are. `place` begins with the file."""
    file = _file(place)
    return _command(f"import onnx; m = onnx.load({file!r}, load_external_data=False); {change}; onnx.save(m, {file!r})")


def sorting(place: str) -> str:
    """Returns a command that sorts the nodes of a file. `place` begins with the file."""
    file = _file(place)
    return _command(f"import onnx_ir as ir; m = ir.load({file!r}); m.graph.sort(); ir.save(m, {file!r})")


def _file(place: str) -> str:
    """Returns the file at the start of a place: `m.onnx, graph 'g'`; a model in memory gets a name to be replaced. The
    word MODEL stays: the command line puts its file there."""
    if place == "MODEL":
        return place
    parts = place.split(", ")
    starts = [", ".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((start for start in starts if Path(start).is_file()), "model.onnx")


def _command(code: str) -> str:
    outer = shlex.quote(code) if any(mark in code for mark in '"$\\') else f'"{code}"'
    return f"`python -c {outer}`"


def renamed_operator(place: str, old: str, new: str) -> str:
    """Returns a command that gives the nodes of an operator another one. `place` begins with the file."""
    return message_change(place, f"[setattr(n, 'op_type', {new!r}) for n in m.graph.node if n.op_type == {old!r}]")
