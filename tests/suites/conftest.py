"""The suites run thousands of models, in few processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.suites import pool


@pytest.fixture(autouse=True, scope="module")
def _pooled() -> Iterator[None]:
    """Ends the processes of a module's runs after the module."""
    yield
    pool.close()


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Whether all was asked for (`make test-all`), not a sample."""
    return bool(pytestconfig.getoption("tier") == "all")
