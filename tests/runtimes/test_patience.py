"""A limit of time for Python code in this process."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.runtimes.torch_eager import TooLongError, within


def endless() -> None:
    while True:
        try:
            time.sleep(0.001)
        except Exception:  # noqa: BLE001 — code of others
            continue


def test_a_loop_without_an_end_is_ended() -> None:
    with pytest.raises(TooLongError), within(0.05):
        endless()


def test_what_ends_in_time_is_not_disturbed() -> None:
    for _ in range(200):
        with contextlib.suppress(TooLongError), within(0.001):  # on a busy machine that much may be over
            pass
    with within(0):
        time.sleep(0.01)
    with contextlib.suppress(TooLongError), within(0.01):
        pass
    time.sleep(0.05)


def test_a_profile_function_still_works_afterwards() -> None:
    """With a flag that is left set, CPython 3.11 would not end here."""
    for wait in (0.001, 0.002, 0.003, 0.004, 0.005):
        with contextlib.suppress(TooLongError), within(0.003):
            time.sleep(wait)
    sys.setprofile(lambda *_: None)
    try:
        assert [str(number) for number in range(3)] == ["0", "1", "2"]
        test_what_is_called()
    finally:
        sys.setprofile(None)


def test_what_is_called() -> None:
    assert sorted([3, 1], key=lambda number: number) == [1, 3]


def test_another_thread_is_not_disturbed() -> None:
    seen: list[str] = []

    def work() -> None:
        with pytest.raises(TooLongError), within(0.05):
            endless()
        seen.append("ended")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["ended"]


class EndlessWhereEmpty(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.numel() == 0:
            pass
        return x * 2


def test_a_module_that_never_ends_on_one_size_is_verified_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.runtimes.torch_eager._LEAST_TIME", 0.3)
    result = onnxsmith.export(EndlessWhereEmpty(), (torch.rand(3, 4),), dynamic={"x": {0: "n"}})
    assert result.ok
    part = result.report.part(Verification)
    assert any("exceeds its time limit" in note for note in part.notes)
    assert 0 not in (part.sizes or {})["n"]
