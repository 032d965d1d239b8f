"""The runtimes of a process stay its own when it forks, and leave nothing when it dies."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import _child, _idle
from onnxsmith.runtimes.onnxruntime import OnnxRuntime
from tests.base.test_forks import status_in_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on this platform")
X = np.ones((2, 3), np.float32)
DIES = """
import os, sys
from pathlib import Path
import numpy as np
from onnxsmith.runtimes.onnxruntime import OnnxRuntime
with OnnxRuntime().prepare(Path(sys.argv[1])) as session:
    session.run({"x": np.ones((2, 3), np.float32)})
    if sys.argv[2] == "busy":
        os._exit(0)
os._exit(0)
"""
MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }'


def test_a_fork_of_an_open_session_gets_a_problem_and_the_session_goes_on() -> None:
    with OnnxRuntime().prepare(from_text(MODEL)) as session:

        def refused() -> bool:
            try:
                session.run({"x": X})
            except OnnxsmithError as error:
                return error.problem.id == "runtime/closed"
            return False

        assert status_in_fork(refused) == 0
        assert status_in_fork(lambda: [one.close() for one in list(_child._open)]) == 0
        assert session.run({"x": X})["y"].tolist() == X.tolist()


def test_a_fork_has_no_pipe_of_its_parents_runtimes() -> None:
    def pipes() -> list[str]:
        found = []
        for file in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # the descriptor of the listing
                found.append(str(file.readlink()))
        return [one for one in found if one.startswith("pipe:")]

    _idle.end_all()
    before = set(pipes())
    with OnnxRuntime().prepare(from_text(MODEL)) as session:
        session.run({"x": X})
        assert set(pipes()) - before
        assert status_in_fork(lambda: set(pipes()) <= before) == 0
    assert set(pipes()) - before  # it waits for the next model
    assert status_in_fork(lambda: set(pipes()) <= before) == 0


@pytest.mark.parametrize("when", ["idle", "busy"])
def test_a_process_that_ends_without_cleaning_up_leaves_no_folder(tmp_path: Path, when: str) -> None:
    model, temporary = tmp_path / "model.onnx", tmp_path / "tmp"
    temporary.mkdir()
    save(from_text(MODEL), model)
    words = [sys.executable, "-c", DIES, str(model), when]
    subprocess.run(words, env={**os.environ, "TMPDIR": str(temporary)}, check=True, timeout=100)
    end = time.monotonic() + 60
    while any(one.name.startswith("onnxsmith-") for one in temporary.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.05)
