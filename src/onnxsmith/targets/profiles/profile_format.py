"""Defines the format of a profile, which says what a target accepts according to its public tables. `profile_reader.py`
loads profiles from TOML."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.operators import dtypes
from onnxsmith.targets.profiles.rules.base import GraphRule
from onnxsmith.targets.profiles.value_limit import Limit

DATA = "*"
"""Is the key under which a plain list of dtypes is stored. The key stands for the first operand and all values of its
type variable."""
ALL = "*"
"""Is the name under which `static = true` is stored. The name stands for all operands and results."""


def _dtype(name: str) -> str:
    try:
        return dtypes.shown(dtypes.read(name, "")) or name
    except OnnxsmithError as error:
        raise PydanticCustomError(
            "unknown_name", "{what}", {"what": error.problem.what, "fix": error.problem.fix}
        ) from None


def _by_operand(raw: Any) -> Any:
    return {DATA: raw} if isinstance(raw, list) else raw


def _names_or_all(raw: Any) -> Any:
    return ((ALL,) if raw else ()) if isinstance(raw, bool) else raw


Names = Annotated[tuple[str, ...], Field(strict=False)]
Dtypes = Annotated[tuple[Annotated[str, AfterValidator(_dtype)], ...], Field(strict=False)]
Bound = Annotated[Limit, BeforeValidator(Limit.read)]
Whole = Annotated[Limit, BeforeValidator(Limit.whole)]
Count = Annotated[int, Field(gt=0)]


class Table(BaseModel):
    """Describes a table of the file. A key that the table does not have is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class Operators(Table):
    """Lists operators that the target accepts, and the conditions that all of `names` have to meet.

    A name is `Conv`, or `com.microsoft::Gelu` in another domain. `since` and `until` bound the version of the
    operator's schema. The keys of `dtypes`, `ranks`, `dims` and `values`, and the names in `constant`, `absent`,
    `doubtful` and `static`, are formal names of operands and results, as the specification writes them. `dtypes` may
    also have type variables as keys; `absent` and `doubtful` may also name attributes.

    `dims` limits single axes, `values` the elements of constant operands, `inputs` and `outputs` the number of operands
    and results. Names in `absent` must not be given. A node that gives a name in `doubtful` is unknown, for the reason
    in `note`. A `note` describes a limit in words; if it is `decisive`, a node that meets all other conditions is
    unknown. If the source is not `certain` of the conditions, a node that does not meet them is unknown, not refused.
    """

    names: Annotated[Names, Field(min_length=1)]
    since: Count | None = None
    until: Count | None = None
    dtypes: Annotated[dict[str, Dtypes], BeforeValidator(_by_operand)] = {}
    rank: Whole | None = None
    ranks: dict[str, Whole] = {}
    dims: dict[str, dict[str, Whole]] = {}
    static: Annotated[Names, BeforeValidator(_names_or_all)] = ()
    constant: Names = ()
    values: dict[str, Bound] = {}
    attributes: dict[str, Bound] = {}
    absent: Names = ()
    doubtful: Names = ()
    inputs: Whole | None = None
    outputs: Whole | None = None
    certain: bool = True
    note: str = ""
    decisive: bool = False
    source: str = ""


class Profile(Table):
    """Says which models a target accepts.

    `id` is the name of the file. `unsaid` lists questions that the sources leave open, `notes` remarks about the target
    as a whole that no condition can check. `refused` names operators that the sources call unsupported. `unlisted` is
    the outlook of operators in neither `refused` nor `operators`. `opset` limits the default domain, `domains` the
    other domains (None: not limited).

    `dtypes`, `max_rank`, `max_dim`, `max_tensor_bytes` and `static` apply to every operand and result,
    `max_weight_bytes` to the sum of all constants. With `folds` an operand that follows from constants and shapes
    counts as constant. A dtype in `doubtful_dtypes` makes a node unknown, not refused, for the reason given. If the
    profile has no `dtypes`, `doubtful_dtypes` applies to operators without their own `dtypes`: to the first operand and
    all values of its type variable. Without `functions` it is unknown whether local functions are accepted. Without
    `subgraphs` operators with branches or bodies have to be listed like other operators.
    """

    id: str = ""
    title: Annotated[str, Field(min_length=1)]
    version: str = ""
    date: datetime.date | None = None
    sources: Names = ()
    unsaid: Names = ()
    notes: Names = ()
    unlisted: Literal["refused", "unknown"]
    opset: Whole | None = None
    max_ir_version: Count | None = None
    domains: Names | None = None
    dtypes: Dtypes | None = None
    doubtful_dtypes: dict[Annotated[str, AfterValidator(_dtype)], str] = {}
    max_rank: Annotated[int, Field(ge=0)] | None = None
    max_dim: Count | None = None
    max_tensor_bytes: Count | None = None
    max_weight_bytes: Count | None = None
    static: bool = False
    folds: bool = False
    subgraphs: bool | None = None
    functions: bool | None = None
    refused: Names = ()
    operators: Annotated[tuple[Operators, ...], Field(strict=False)] = ()
    rules: Annotated[tuple[GraphRule, ...], Field(strict=False)] = ()

    @property
    def listed(self) -> dict[str, Operators]:
        """Maps each operator to its conditions."""
        return {name: entry for entry in self.operators for name in entry.names}

    @property
    def source(self) -> str:
        """Returns the first source; without sources, the file's name."""
        return self.sources[0] if self.sources else self.id
