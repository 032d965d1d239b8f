"""What every test may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import HealthCheck, settings

from onnxsmith.problem import OnnxsmithError, Problem

settings.register_profile(
    "onnxsmith", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("onnxsmith")


class Refusal:
    """The problem of a refused block, once the block has ended."""

    problem: Problem


Refused = Callable[[str], AbstractContextManager[Refusal]]


@pytest.fixture(scope="session")
def refused() -> Refused:
    """`with refused("model/empty") as refusal:` holds the block to raising that problem."""

    @contextmanager
    def expect(problem_id: str) -> Iterator[Refusal]:
        refusal = Refusal()
        with pytest.raises(OnnxsmithError) as caught:
            yield refusal
        refusal.problem = caught.value.problem
        assert refusal.problem.id == problem_id, str(refusal.problem)

    return expect
