"""Writes the one line of Python that changes a field of a model, for files that onnxsmith does not load. The changed
model is a new file."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.words import pasted


def message_change(place: str, change: str) -> str:
    """Returns a command that reads the message `m` of a file, carries out `change`, and writes a new file, and says
    so. Data files stay as they are, so the new file lies beside the old one. `place` begins with the file."""
    file = file_of(place)
    new = f"{file}-fixed.onnx" if file == "MODEL" else str(Path(file).with_name(f"{Path(file).stem}-fixed.onnx"))
    code = f"import onnx; m = onnx.load({file!r}, load_external_data=False); {change}; onnx.save(m, {new!r})"
    quoted = pasted(code) if any(mark in code for mark in '"$\\') else f'"{code}"'
    return f"`python -c {quoted}` writes {'a new file' if file == 'MODEL' else new}"


def file_of(place: str) -> str:
    """Returns the file at the start of a place: `m.onnx, graph 'g'`; a model in memory gets a name to be replaced. The
    word MODEL stays: the command line puts its file there."""
    if place == "MODEL":
        return place
    parts = place.split(", ")
    starts = [", ".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((start for start in starts if Path(start).is_file()), "model.onnx")


def renamed_operator(place: str, old: str, new: str) -> str:
    """Returns a command that gives the nodes of an operator another one. `place` begins with the file."""
    return message_change(place, f"[setattr(n, 'op_type', {new!r}) for n in m.graph.node if n.op_type == {old!r}]")
