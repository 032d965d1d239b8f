"""A plugin of pytest that notes which mutants each test case comes to: a line of JSON for each case."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import onnxsmith_reached
import pytest

FOLDER = "ONNXSMITH_REACHED_FOLDER"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    folder, worker = Path(os.environ[FOLDER]), os.environ.get("PYTEST_XDIST_WORKER", "main")
    now = folder / f"now-{worker}"
    now.write_text("", encoding="utf-8")
    onnxsmith_reached.seen.clear()
    os.environ[onnxsmith_reached.FILE] = str(now)
    try:
        return (yield)
    finally:
        reached = sorted(set(now.read_text(encoding="utf-8").split("\n")) - {""})
        with (folder / f"reached-{worker}.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"case": item.nodeid, "reached": reached}) + "\n")
