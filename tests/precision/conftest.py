"""Fixtures of quantising and pruning."""

from __future__ import annotations

import pytest

from onnxsmith.precision import score_power
from onnxsmith.precision.score_power import Power


@pytest.fixture
def unmeasured_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes any score, without a run: for metrics that give numbers from a list."""
    monkeypatch.setattr(score_power, "measured", lambda *_, **__: Power((), ()))
