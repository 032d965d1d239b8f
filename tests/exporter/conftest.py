"""What every test of the exporter uses."""

from __future__ import annotations

import subprocess

import pytest


@pytest.fixture(autouse=True)
def forks(forked_traces: None) -> None:
    """Forks the processes of TorchScript's exporter, except in tests with `new_processes`."""


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts the processes of TorchScript's exporter as users get them. For tests that ask about these processes."""
    from onnxsmith.exporter.strategies import _separate_process

    monkeypatch.setattr(_separate_process, "subprocess", subprocess)
