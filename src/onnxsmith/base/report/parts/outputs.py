"""The outputs of one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Table


@dataclass(frozen=True)
class OutputArray:
    """One output. `low`, `mean` and `high` are over the finite numbers, None for other types; `written` is its file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    nonfinite: int = 0
    written: str = ""


@dataclass(frozen=True)
class Outputs(Part):
    """A run on one input. `nodes` counts nodes by execution provider, if the runtime reports it."""

    title = "Run"

    model: str
    runtime: str
    provider: str
    inputs: dict[str, str]
    outputs: tuple[OutputArray, ...]
    nodes: dict[str, int]

    def blocks(self) -> Iterator[Block]:
        rows = [("model", self.model), ("runtime", f"{self.runtime}, {self.provider}")]
        rows += [(f"nodes on {name}", str(count)) for name, count in self.nodes.items()]
        rows += [(f"input {name}", text) for name, text in self.inputs.items()]
        yield Facts(tuple(rows))
        yield Table(
            ("output", "dtype and shape", "min", "mean", "max", "not finite", "written to"),
            tuple(
                (
                    o.name,
                    f"{o.dtype}{list(o.shape)}",
                    _number(o.low),
                    _number(o.mean),
                    _number(o.high),
                    str(o.nonfinite or ""),
                    o.written,
                )
                for o in self.outputs
            ),
            right=(2, 3, 4, 5),
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
