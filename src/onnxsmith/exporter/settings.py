"""How to export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.exporter.inputs.dynamic import Dynamic


@dataclass(frozen=True)
class Settings:
    """How to export. The fields are the keywords of `export`, which documents them."""

    dynamic: Dynamic | Sequence[str] = None
    opset: int | None = None
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    drop_unused: bool = False
    weights: bool = True
    simplify: bool = True
    verify: bool = True
    runtime: str | None = None
    external_data: bool | None = None
    seed: int = 0
    strategy: str | None = None
    write_unsure: bool = False
    as_traced: bool = False
    tolerance: float | None = None
