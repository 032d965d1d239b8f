"""What the tests of the fleet share: a cache folder of their own, and steps without processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleets import steps

__all__ = ["steps"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps digests and environments out of the cache of who runs the tests."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
