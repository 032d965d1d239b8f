"""Running a model leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

TEXT = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Neg(x) }'


def test_onnxruntime_leaves_no_device_id_and_no_database(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    save(from_text(TEXT), work / "m.onnx")
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(tmp_path)}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-m", "onnxsmith", "simplify", "m.onnx", "-o", "s.onnx"]
    subprocess.run(command, cwd=work, env=environment, check=True, capture_output=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "work"]
    assert not list(home.rglob("*"))
    assert sorted(p.name for p in work.iterdir()) == ["m.onnx", "s.onnx"]
