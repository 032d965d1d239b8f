"""Runs a whole model at several sizes of its symbolic dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.run import accepted, planned

_SIZES = (1, 2, 3, 4)
"""Lists the sizes that are tried. A choice: a batch of one, and small batches, odd and even."""
_MOST_SYMBOLS = 4
"""Limits the dimensions that are tried. A choice: each costs as many runs as there are sizes."""


def failing_sizes(source: Path | ir.Model, settings: Verify) -> dict[str, tuple[int, ...]]:
    """Returns the sizes at which the model fails, by the symbolic dimension of the inputs, with the other dimensions as
    they are in a run that succeeds. Leaves out dimensions at which all tried sizes succeed, or all fail. Returns
    nothing if no run succeeds, or if the runtime lacks what the model needs."""
    model = load(source)
    plan = planned(model, signature(model), sizes(settings.sizes), settings.seed)

    def on(name: str) -> dict[str, tuple[int, ...]]:
        with runtimes.get(name).prepare(source, runtimes.patient(Options())) as session:
            given = plan.generator.feed(dict(plan.start or {}), seed=plan.seed).values
            values, _, _ = accepted(session, plan, given)
            return failing(session, plan, values)

    try:
        return runtime_choice.judged(settings.runtime, [source], on)[0]
    except OnnxsmithError:
        return {}


def failing(session: Session, plan: Plan, values: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns what `failing_sizes` does, for a session that takes these values."""
    interface = plan.generator.signature
    symbols = [name for name in dims.symbols(interface) if name not in plan.known][:_MOST_SYMBOLS]
    start = {**(plan.start or {}), **of_feed(interface, values)}

    def fails(at: dict[str, int]) -> bool:
        try:
            session.run(plan.generator.feed(at, seed=plan.seed).values)
        except OnnxsmithError:
            return True
        return False

    found = {one: tuple(size for size in _SIZES if fails({**start, one: size})) for one in symbols}
    # A model of pictures takes no height of 4: that is no news.
    return {one: sizes_ for one, sizes_ in found.items() if 0 < len(sizes_) < len(_SIZES)}
