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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="the suites in full, not a sample of them (make test-all)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked `whole` unless the whole was asked for."""
    if not config.getoption("whole"):
        left_out = [item for item in items if item.get_closest_marker("whole")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("whole")]


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
