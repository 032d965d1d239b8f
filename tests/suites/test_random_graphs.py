"""Random graphs of several dozen operators: before and after agree, at several sizes, on ordinary and special numbers.

`make test` makes a hundred and some, `make test-all` thousands of others, in parts. A part's graphs stay the same.
A graph that showed a fault is kept in `regressions/`, as the text that the failure printed, and is run always.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, seed, settings

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure.model_copy import cloned
from tests.suites.agreement import assert_harmless, made_feeds, on_onnxruntime
from tests.suites.random_graph import SIZES
from tests.suites.random_layers import texts
from tests.suites.shapes import lies

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.onnxtxt"))
SAMPLE, PART, PARTS = 150, 250, 20


def check(text: str) -> None:
    """Holds simplifying the graph to what it was, at the sizes that it was made for, and at 1.

    And at 0 but for one rule, whose page says that it needs the dimensions that it copies not to be empty, and for
    reductions, which onnxruntime gives shapes of its own where there is nothing to reduce.
    """
    model = from_text(text)
    assert_harmless(model, named=[*SIZES, {"n": 1, "m": 1}])
    if "Reduce" not in text:
        assert_harmless(model, named=[{"n": 0, "m": 2}], skip=["shape/constant-reshape"], runs=False)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regressions(path: Path) -> None:
    check(path.read_text())


def test_random_graphs() -> None:
    for_random_graphs(check, SAMPLE)


@pytest.mark.whole
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_more_random_graphs(part: int) -> None:
    for_random_graphs(check, PART, part)


def test_inferred_shapes() -> None:
    for_random_graphs(check_shapes, SAMPLE // 3)


@pytest.mark.whole
@pytest.mark.parametrize("part", range(1, PARTS // 4 + 1))
def test_more_inferred_shapes(part: int) -> None:
    for_random_graphs(check_shapes, PART, part)


def for_random_graphs(holds: Callable[[str], None], count: int, part: int = 0) -> None:
    """Compares random graphs with something: those of this part."""

    @seed(part)
    @settings(
        max_examples=count,
        derandomize=False,
        deadline=None,
        database=None,
        print_blob=part > 0,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts())
    def checked(text: str) -> None:
        try:
            holds(text)
        except Exception as error:
            error.add_note(f"the graph, to be kept in {Path(__file__).parent}/regressions:\n{text}")
            raise

    checked()


def check_shapes(text: str) -> None:
    """Holds what is known of each value before it runs, dtype, shape and elements, to runs at several sizes."""
    model = from_text(text)
    made = [value for node in model.graph for value in node.outputs]
    shaped = cloned(model)
    assert not Inference(shaped).notes
    known = {value.name: value for node in shaped.graph for value in node.outputs}
    model.graph.outputs[:] = [value for value in made if value.dtype is not None or known[value.name].dtype is not None]
    for value in model.graph.outputs:
        value.type, value.shape = known[value.name].type, None
    with on_onnxruntime(ir.to_proto(model)) as run:
        for sizes in (*SIZES, {"n": 1, "m": 1}):
            answer = run(next(made_feeds(model, (), [sizes])))
            for name, array in answer.items() if isinstance(answer, dict) else ():
                found = lies(known[name], array, sizes)
                assert not found, f"{name} by {known[name].producer().op_type}: {found}"
