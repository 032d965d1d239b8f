"""Streams, logs, temporary files and random numbers of the process stay those of the caller."""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._logging._internal import LazyTraceHandler

import onnxsmith
from onnxsmith.exporter.pretrained import pretrained_folder
from onnxsmith.exporter.pretrained.pretrained_examples import examples
from onnxsmith.exporter.tracing.trace_diagnosis import _silent


def test_streams_come_back_if_two_threads_discard_output_and_end_in_another_order() -> None:
    before = sys.stdout, sys.stderr
    inside, entered = threading.Event(), threading.Event()

    def first() -> None:
        with _silent():
            inside.set()
            entered.wait(0.3)

    def second() -> None:
        inside.wait(20)
        with _silent():
            entered.set()
            threads[0].join(0.5)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = before
    assert after == before


@pytest.mark.usefixtures("forked_traces")
def test_a_draft_leaves_temporary_files_and_logs_of_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(tempfile.gettempdir())
            return x * 2 if x.sum() > 0 else x - 1

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log, handler = logging.getLogger("torch.__trace"), LazyTraceHandler(None)
    log.addHandler(handler)
    try:
        found = onnxsmith.diagnose(Branch(), (torch.ones(3),))
        assert handler in log.handlers
    finally:
        log.removeHandler(handler)
    assert found.report.problems
    assert set(seen) == {str(tmp_path)}
    assert list(tmp_path.glob("export_*")) == []


def test_made_weights_and_examples_leave_the_random_numbers_of_the_caller() -> None:
    before = torch.get_rng_state()
    module, notes = pretrained_folder._made(lambda _: torch.nn.Linear(2, 2), SimpleNamespace(), None, trust=False)
    again, _ = pretrained_folder._made(lambda _: torch.nn.Linear(2, 2), SimpleNamespace(), None, trust=False)
    assert notes
    assert torch.equal(module.weight, again.weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_examples_of_a_task_leave_the_random_numbers_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []

    def draws(*_: object) -> list[str]:
        drawn.append(torch.rand(2))
        return ["unheard_of"]

    monkeypatch.setattr("onnxsmith.exporter.pretrained.pretrained_examples.inputs", draws)
    before = torch.get_rng_state()
    for _ in range(2):
        with pytest.raises(onnxsmith.OnnxsmithError):
            examples(torch.nn.Identity(), SimpleNamespace(), tmp_path, "any")
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)
