"""Collects what is known about a model's licence: the file that the user gave, and the model's own metadata."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.base import user_files
from onnxsmith.base.problem import problem
from onnxsmith.deployment.bundles.identifiers import python

_KEYS = ("licen", "copyright", "author", "owner", "attribution", "notice")
"""Lists parts of metadata keys about rights. A choice: ONNX has no standard key; these parts occur in public models."""
_LONGEST = 500


def given(file: str | Path | None) -> bytes | None:
    """Returns the text of the licence file. Raises OnnxsmithError: `bundle/licence` if the file cannot be read or is
    empty."""
    if file is None:
        return None
    try:
        text = user_files.read_bytes(Path(file))
        text.decode("utf-8")
    except (OSError, ValueError) as error:
        raise problem(
            "bundle/licence",
            "the licence cannot be read",
            where=str(file),
            why=str(error),
            fix="give a text file in UTF-8: --licence LICENSE",
        ) from error
    if not text.strip():
        raise problem(
            "bundle/licence",
            "the licence file is empty",
            where=str(file),
            fix=f"write the licence's text to {file}; or leave --licence out",
        )
    return text


def metadata(model: ir.Model) -> dict[str, str]:
    """Returns the model's metadata about rights, by key."""
    held = {key: value for key, value in model.metadata_props.items() if any(part in key.lower() for part in _KEYS)}
    return dict(sorted(held.items()))


def notice(model: ir.Model, text: bytes | None) -> str:
    """Returns the text of NOTICE: the origin of the licence, and the model's own metadata about rights."""
    lines = [
        "The licence in the file LICENSE was given when this bundle was made."
        if text is not None
        else "No licence was given for this model when this bundle was made."
    ]
    found = metadata(model)
    lines += [f"Its metadata says: {python(key)}: {python(value[:_LONGEST])}" for key, value in found.items()]
    if not found:
        lines.append("Its metadata says nothing of a licence, an author or a copyright.")
    producer = " ".join(part for part in (model.producer_name, model.producer_version) if part)
    lines += [f"It was produced by {python(producer)}."] if producer else []
    return "\n".join(lines) + "\n"


def clause(model: ir.Model, file: str | Path | None) -> str:
    """Returns a clause about the licence for the report."""
    found = "; ".join(f"{key}: {value[:60]}" for key, value in metadata(model).items())
    if file is not None:
        return f"{file}" + (f" (the model's metadata says {found})" if found else "")
    return f"no licence given; the model's metadata says {found}" if found else "no licence given"
