"""The settings of one export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxsmith.base.settings import Save, Verify
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Dynamic
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.graph.structure.dim_ranges import Range

if TYPE_CHECKING:
    from onnxsmith.optimizer.target_form import ForTarget  # imports pydantic, which only a target needs


@dataclass(frozen=True)
class Settings:
    """The keywords of `export`; its docstring describes them."""

    dynamic: Dynamic | Sequence[str] = None
    opset: int | None = None
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    drop_unused: bool = False
    weights: bool = True
    simplify: bool = True
    strategy: str | None = None
    as_traced: bool = False
    verify: Verify | None = Verify()
    """Holds the options of the verification; None means that the export is not verified."""
    save: Save = Save()
    target: ForTarget | None = None
    translations: Mapping[Any, Any] | None = None
    """Holds translations of operators for this export only."""
    state: Sequence[str] = ()
    carried: Carried = field(default_factory=Carried)
    """Holds the state that the graph takes and returns."""
    meant: Mapping[str, Range] = field(default_factory=dict)
    """Holds the sizes that the processor of a saved model makes, by the name of the dimension."""
