"""Programs that call the library find themselves as they were: no process, file, thread or setting is left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stressing import hosts
from stressing.hosting.programs import HOSTS

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc"),
]


@pytest.mark.whole
@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_as_it_was(name: str, tmp_path: Path) -> None:
    """The memory is measured by the benchmark: ten calls say little about it."""
    found = hosts.hosted(name, HOSTS[name][1][0], 10, tmp_path)
    assert [said for one in found for said in one["wrong"]] == []
