"""On how many threads a torch module is called."""

from __future__ import annotations

import pytest
import torch

from onnxsmith.base.seams.torch import threads as seam
from onnxsmith.base.seams.torch.threads import Threads


@pytest.fixture(autouse=True)
def _two_threads() -> object:
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(usual)


def _of_one_call(threads: Threads) -> int:
    with threads.chosen():
        found = torch.get_num_threads()
    assert torch.get_num_threads() == 2
    return found


def test_short_calls_run_on_one_thread_until_one_was_long(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(torch.nn.Linear(2, 2))
    assert [_of_one_call(threads) for _ in range(2)] == [1, 1]
    monkeypatch.setattr(seam, "_SHORT", -1.0)
    assert [_of_one_call(threads) for _ in range(2)] == [1, 2]


def test_a_large_module_runs_on_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "_SMALL", 23)
    assert _of_one_call(Threads(torch.nn.Linear(2, 2))) == 2  # 6 numbers of 4 bytes


def test_threads_are_restored_after_an_error_and_a_lazy_module_counts_as_small() -> None:
    threads = Threads(torch.nn.LazyLinear(2))
    with pytest.raises(ZeroDivisionError), threads.chosen():
        raise ZeroDivisionError
    assert _of_one_call(threads) == 1
