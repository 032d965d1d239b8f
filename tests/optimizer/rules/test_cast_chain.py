"""algebra/cast-chain: which pairs lose something."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "algebra/cast-chain"
CODES = {"float": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "string": 8, "bool": 9, "float16": 10, "double": 11}
CODES["bfloat16"] = 16


def chain(a: str, b: str, c: str) -> str:
    return f"""g ({a}[N] x) => ({c}[M] y) {{
        p = Cast<to = {CODES[b]}>(x)\n q = Cast<to = {CODES[c]}>(p)\n y = Concat<axis = 0>(q, q) }}"""


@pytest.mark.parametrize(
    "dtypes", ["int32 int64 float", "bool float int64", "float16 float double", "int32 int64 int8", "int8 float double"]
)
def test_one_cast_is_left(dtypes: str) -> None:
    assert_rewritten(RULE, "Cast Concat", chain(*dtypes.split()))


@pytest.mark.parametrize(
    "dtypes", ["float double float", "bool int64 bool", "float16 float float16", "int8 float int8"]
)
def test_there_and_back_is_nothing(dtypes: str) -> None:
    assert_rewritten(RULE, "Concat", chain(*dtypes.split()))


REFUSED = {
    "1: float bfloat16 float": "not every FLOAT is a BFLOAT16",
    "1: float float16 float": "not every FLOAT is a FLOAT16",
    "1: int64 int32 int64": "not every INT64 is a INT32",
    "1: int64 double int64": "not every INT64 is a DOUBLE",
    "1: int32 float double": "not every INT32 is a FLOAT",
    "1: float bool float": "not every FLOAT is a BOOL",
    "1: int8 uint8 int64": "not every INT8 is a UINT8",
    "2: int8 float uint8": "the conversion of other values",
    "2: float double int64": "the conversion of other values",
    "3: int32 double float16": "round twice",
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    number, dtypes = case.split(": ")
    if number == "1" and "bfloat16" not in dtypes:  # the others are up to the runtime
        assert_refused(RULE, REFUSED[case], chain(*dtypes.split()))
    result, part = simplified(from_text(head(17) + chain(*dtypes.split())))
    assert len(result.graph) == 3
    assert any(entry.rule == RULE and REFUSED[case] in entry.why_not for entry in part.refused)


def test_strings_are_no_match() -> None:
    assert_left_alone(RULE, chain("bool", "int64", "string"))
