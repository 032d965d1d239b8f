"""Finds a form by its name."""

from __future__ import annotations

import difflib

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.deployment.bundles.forms.base import Form


def form_of(name: str) -> Form:
    """Returns the form of this name.

    Raises:
        OnnxsmithError: `bundle/unknown-form`.
    """
    found = rooms.members("onnxsmith.deployment.bundles.forms", Form)
    if name not in found:
        near = difflib.get_close_matches(name.lower().replace("_", "-").replace(".", "-"), found, 1, cutoff=0.4)
        raise problem(
            "bundle/unknown-form",
            f"there is no form {name!r}" if name else "no form was given",
            why=f"there are: {', '.join(found)}",
            fix=f"--for {near[0] if near else 'python'}",
        )
    return found[name]
