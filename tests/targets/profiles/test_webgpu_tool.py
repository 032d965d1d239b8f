"""tools/webgpu_profile.py: a table of onnxruntime-web becomes tables of a profile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from onnxsmith.targets.profiles.profile_reader import parsed
from onnxsmith.targets.profiles.value_limit import Limit
from tests.targets.profiles.asking import START

TOOL = Path(__file__).parents[3] / "tools" / "webgpu_profile.py"
TABLE = """| Operator | Opset | Comments |
|:--------:|:-------------:|-----|
| Abs | ai.onnx(6-12,13+) |  |
| Conv | ai.onnx(1-10,11+); com.ms.internal.nhwc(1-10,11+) | need perf optimization; conv3d is not supported |
| Gelu | ai.onnx(20+); com.microsoft(1+) |  |
| GridSample | ai.onnx(16-19); com.ms.internal.nhwc(16-19) |  |
| MemcpyToHost | ai.onnx(1+) |  |
| MultiHeadAttention | com.microsoft(1+) | need implementing mask and past/present |
"""


def converted(folder: Path, table: str) -> subprocess.CompletedProcess[str]:
    (folder / "table.md").write_text(table, encoding="utf-8")
    return subprocess.run([sys.executable, TOOL, "table.md"], cwd=folder, capture_output=True, text=True, check=False)


def test_a_table(tmp_path: Path) -> None:
    listed = parsed(START + converted(tmp_path, TABLE).stdout, "web.toml").listed
    assert sorted(listed) == [
        "Abs", "Conv", "Gelu", "GridSample", "com.microsoft::Gelu", "com.microsoft::MultiHeadAttention",
    ]  # fmt: skip
    bounds = {name: (entry.since, entry.until) for name, entry in listed.items()}
    assert (bounds["Abs"], bounds["Gelu"], bounds["GridSample"]) == ((6, None), (20, None), (16, 19))
    assert bounds["com.microsoft::Gelu"] == (None, None)
    assert listed["Conv"].ranks == {"X": Limit((3, 4))}
    assert listed["com.microsoft::MultiHeadAttention"].decisive


def test_a_gap_in_the_versions_is_an_error(tmp_path: Path) -> None:
    done = converted(tmp_path, "| Abs | ai.onnx(6-11,13+) |  |\n")
    assert done.returncode != 0
    assert "the versions 6-11,13+ have a gap" in done.stderr
