"""What the tests of `check` share."""

from __future__ import annotations

from typing import Any

import pytest

from onnxsmith.base import rooms
from onnxsmith.targets.judges.base import Target


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(target: Target) -> None:
        known = rooms.members

        def members(room: str, base: Any) -> Any:
            return {"fake": target} if room == "onnxsmith.targets.judges" else known(room, base)

        monkeypatch.setattr(rooms, "members", members)

    return use
