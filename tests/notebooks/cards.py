"""Cards for the tests."""

from __future__ import annotations

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Chart, Facts, Table, Text, Tone
from onnxsmith.base.report.card import Card
from onnxsmith.base.report.verdict import Verdict

FIX = 'write the axis again: onnxsmith.export(net, (x,), dynamic={"x": {0: "batch"}})'
PROBLEM = Problem("verify/different", "output 'y' differs", "b.onnx", "its bias is 1 too large", FIX)
LAYERS = ("conv1", "relu1", "conv2", "relu2")


def rows(count: int) -> Table:
    return Table(("node", "operator", "error"), tuple((f"n{at}", "Conv", str(at)) for at in range(count)), right=(2,))


def card(verdict: Verdict = Verdict.DIFFERENT, **changes: object) -> Card:
    """A card with a block of each kind."""
    chart = Chart("error by layer", LAYERS, (("inherited", (1e-6, 1e-6, 0.1, 0.2)),), "layers", "error")
    long = Text("the error grows most at conv2, and every layer behind it inherits the error", Tone.BAD)
    blocks: tuple[Block, ...] = (Facts((("runs", "7"), ("sizes of batch", "1, 2, 3"))), long, chart, rows(6))
    parts: tuple[tuple[str, tuple[Block, ...]], ...] = (
        ("Layers", blocks),
        ("Program", (Text("def forward(x):\n    return x", verbatim=True), Text("equal", Tone.GOOD))),
        ("Nothing", ()),
    )
    values: dict[str, object] = {
        "title": "onnxsmith compare",
        "headline": "a.onnx and b.onnx: DIFFERENT on 7 inputs",
        "verdict": verdict,
        "problems": (PROBLEM,),
        "notes": ("one size was not tried",),
        "parts": parts,
        "more": "onnxsmith.view(result.model)",
    }
    return Card(**{**values, **changes})  # type: ignore[arg-type]
