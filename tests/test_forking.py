"""Forked processes do what new ones do: they give results, they die, they are ended, and know the caller's place."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from onnxsmith.exporter.strategies import _separate_process

pytestmark = [
    pytest.mark.usefixtures("forked_traces"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on this platform"),
]


def place(name: str) -> list[Any]:
    return [os.getpid(), str(Path.cwd()), os.environ.get(name), torch.get_num_threads() > 0]


def dies(_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def raises(_: object) -> None:
    raise ValueError("said by the function")


def waits(_: object) -> None:
    time.sleep(60)


def test_each_process_is_another_one_and_knows_folder_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for value in "ab":
        (tmp_path / value).mkdir()
        monkeypatch.chdir(tmp_path / value)
        monkeypatch.setenv("ONNXSMITH_FORKED", value)
        process, *said = _separate_process.run(place, "ONNXSMITH_FORKED", limit=100)
        assert said == [str(tmp_path / value), value, True]
        seen.append(process)
    assert len({*seen, os.getpid()}) == 3


@pytest.mark.parametrize(
    ("function", "limit", "said"),
    [(dies, 100, "SIGSEGV"), (raises, 100, "said by the function"), (waits, 0.5, "took longer than 0.5 s")],
)
def test_what_goes_wrong_is_told_and_the_next_process_works(function: Any, limit: float, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        _separate_process.run(function, None, limit=limit)
    assert _separate_process.run(place, "", limit=100)[0] != os.getpid()
