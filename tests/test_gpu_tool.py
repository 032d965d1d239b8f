"""What `tools/gpu.py` downloads, runs and prints, with stand-ins for pip, pytest and the GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one[cuda]" time="1.25"/>
<testcase classname="tests.test_a" name="test_two" time="0.5"><failure message="assert 1 == 2&#10;more"/></testcase>
<testcase classname="tests.test_a" name="test_three" time="0"><skipped message="no CUDA">why</skipped></testcase>
<testcase classname="tests.test_a" name="test_four" time="0"><error message="fixture"/></testcase>
</testsuite></testsuites>"""


def tool() -> Any:
    """The program as a module, under a name that no other has."""
    spec = importlib.util.spec_from_file_location("_onnxsmith_gpu", ROOT / "tools" / "gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


gpu = tool()
PASSED, SKIPPED = gpu.Outcome("t::a", "passed", 1.0), gpu.Outcome("t::b", "skipped", 0.0, "no CUDA")
FAILED = gpu.Outcome("t::long_name", "failed", 2.0, "assert 1 == 2\nmore")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("onnx~=1.23", "onnx"),
        ("fast-sugiyama~=0.5.3; platform_machine != 'aarch64'", "fast-sugiyama"),
        ("ml_dtypes>=0.5.4", "ml-dtypes"),
        ("onnxruntime_gpu-1.32.0-cp312-cp312-manylinux_2_28_x86_64.whl", "onnxruntime-gpu"),
        ("numpy-2.5.5-cp312-cp312-manylinux_2_28_x86_64.whl", "numpy"),
        ("numpy", "numpy"),
    ],
)
def test_the_name_of_a_package(text: str, name: str) -> None:
    assert gpu.named(text) == name


def test_the_machine_has_torch_and_the_folder_the_rest() -> None:
    names = {gpu.named(one) for one in gpu.requirements()}
    assert not names & {"torch", "onnxruntime", "onnxruntime-gpu", "numpy"}
    assert {"onnx", "onnx-ir", "onnxscript", "cloudpickle", "pytest", "hypothesis"} <= names


def wheel(folder: Path, name: str, size: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}-1.0-py3-none-any.whl").write_bytes(bytes(size))


def test_a_folder_that_is_too_large_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gpu.GpuError, match="has no wheels: run `make gpu-wheels`"):
        gpu.size(tmp_path)
    wheel(tmp_path, "small", 1_000_000)
    wheel(tmp_path, "large", 2_000_000)
    assert gpu.size(tmp_path, 3_000_000) == f"{tmp_path}: 2 wheels, 3.0 MB"
    with pytest.raises(gpu.GpuError, match=r"2 wheels, 3\.0 MB, more than 2\.9; the largest are large-1\.0"):
        gpu.size(tmp_path, 2_900_000)


def test_wheels_are_downloaded_anew_and_those_of_the_machine_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        wheel(tmp_path, "onnx", 1000)
        wheel(tmp_path, "numpy", 1000)
        return subprocess.CompletedProcess(command, 0)

    wheel(tmp_path, "old", 1000)
    monkeypatch.setattr(gpu.subprocess, "run", pip)
    assert gpu.download(tmp_path, "3.12") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["onnx-1.0-py3-none-any.whl"]
    assert asked[0][asked[0].index("--python-version") + 1] == "3.12"
    assert "1 wheels, 0.0 MB" in capsys.readouterr().out


def test_a_download_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    with pytest.raises(gpu.GpuError, match="pip download ended with 1"):
        gpu.download(tmp_path, "3.12")


def test_results_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(JUNIT, encoding="utf-8")
    outcomes = gpu.outcomes_of(tmp_path / "a.xml")
    assert [(one.result, one.why) for one in outcomes] == [
        ("passed", ""),
        ("failed", "assert 1 == 2\nmore"),
        ("skipped", "no CUDA"),
        ("failed", "fixture"),
    ]
    assert outcomes[0] == gpu.Outcome("tests.test_a::test_one[cuda]", "passed", 1.25)


def test_the_table() -> None:
    assert gpu.outcome_table([PASSED, SKIPPED, FAILED]).splitlines() == [
        "",
        "t::a          passed     1.0 s",
        "t::b          skipped    0.0 s  no CUDA",
        "t::long_name  failed     2.0 s  assert 1 == 2 more",
        "",
        "1 passed, 1 failed, 1 skipped",
    ]
    assert gpu.outcome_table([SKIPPED]).endswith("0 passed, 0 failed, 1 skipped: NO TEST RAN")
    assert (
        gpu.facts_table({"GPU": "NVIDIA H200,\n580", "torch": "2.13.0"}) == "\nGPU    NVIDIA H200, 580\ntorch  2.13.0"
    )


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [([PASSED], 0), ([PASSED, SKIPPED], 0), ([PASSED, FAILED], 1), ([SKIPPED], 1), ([], 1)],
)
def test_the_exit_status(outcomes: list[Any], status: int) -> None:
    assert gpu.status(outcomes) == status


def stand_in(tmp_path: Path, body: str) -> Path:
    """A program that is called in place of Python."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, seconds: float = 20.0) -> list[Any]:
    monkeypatch.setattr(gpu, "RESULTS", tmp_path)
    file = ROOT / "tests" / "runtimes" / "test_gpu.py"
    outcomes: list[Any] = gpu.tested(stand_in(tmp_path, body), file, time.monotonic() + seconds)
    return outcomes


def test_a_file_that_crashes_or_hangs_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (crashed,) = ran(tmp_path, monkeypatch, "echo first; echo 'CUDA error 700'; exit 139")
    assert (crashed.test, crashed.result) == ("tests/runtimes/test_gpu.py", "failed")
    assert crashed.why == "pytest ended with 139; CUDA error 700"
    (hung,) = ran(tmp_path, monkeypatch, "exec sleep 20", seconds=1)
    assert hung.result == "failed"
    assert "no time is left for this file" in hung.why


def test_a_file_with_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wanted").write_text(JUNIT, encoding="utf-8")
    code = f'for one; do case $one in --junitxml=*) cp {tmp_path}/wanted "${{one#--junitxml=}}";; esac; done; echo "$@"'
    assert len(ran(tmp_path, monkeypatch, code)) == 4
    (log,) = tmp_path.glob("*.log")
    assert "-m gpu --timeout=60" in log.read_text(encoding="utf-8")


def test_what_is_not_known_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = gpu.machine(stand_in(tmp_path, "/bin/false"))
    assert facts["GPU, driver, memory"].startswith("not known: ")
    assert facts["versions"] == "not known: Python did not answer"
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho NVIDIA H200, 580.1, 141 GiB\n", encoding="utf-8")
    (tmp_path / "nvidia-smi").chmod(0o755)
    facts = gpu.machine(stand_in(tmp_path, """echo warning; echo '{"torch": "2.13.0"}'"""))
    assert facts == {"GPU, driver, memory": "NVIDIA H200, 580.1, 141 GiB", "torch": "2.13.0"}


def test_every_file_with_a_gpu_test_is_found() -> None:
    names = {path.name for path in gpu.test_files()}
    assert {"test_gpu.py", "test_on_cpu.py", "test_bench.py"} <= names
