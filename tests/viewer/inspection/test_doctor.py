"""The doctor sees what is there, and names what does not fit together; a crash is a finding."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import pytest

from onnxsmith.base.library_versions import NEWEST_TESTED
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.environment import Environment
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.explain import Doctor
from onnxsmith.graph.structure.versions import newest
from onnxsmith.runtimes import onnxruntime as runtime
from onnxsmith.viewer.inspection import doctor as room
from onnxsmith.viewer.inspection.doctor import Found, doctor, findings

CORE = {
    name: NEWEST_TESTED[name]
    for name in ("onnx", "onnx-ir", "onnx-shape-inference", "onnxscript", "numpy", "ml_dtypes", "safetensors")
}

needs_onnxruntime = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")


def ids(found: Found) -> list[str]:
    return [each.id for each in findings(found)]


def test_this_environment() -> None:
    report = Doctor().run()
    assert report.verdict is Verdict.DONE
    assert Report.from_json(report.to_json()) == report
    part = report.part(Environment)
    versions = {package.name: package.version for package in part.packages}
    assert versions["onnx"] == metadata.version("onnx")
    assert (part.onnx_ir, part.onnx_opset) == (newest().ir, newest().opset)
    assert list(part.blocks())


@needs_onnxruntime
def test_what_onnxruntime_loads_is_tried_out() -> None:
    part = doctor().part(Environment)
    assert part.runtime_ir is not None
    assert part.runtime_ir >= 10
    assert part.runtime_opset is not None
    assert part.runtime_opset >= 20
    assert {provider.name: provider.starts for provider in part.providers}["CPUExecutionProvider"] is True


@needs_onnxruntime
def test_limits_stop_where_they_are_told_to_start() -> None:
    found = runtime.limits(ir_version=9, opset=15)
    assert (found["ir"], found["opset"]) == (9, 15)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from onnxsmith.viewer.inspection.doctor import doctor; doctor();"
        "assert not {'torch', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({"onnxruntime": "1.31.0"}, []),
        ({"onnxruntime": "1.30.2"}, ["doctor/old-onnxruntime"]),
        ({"onnxruntime-gpu": "1.9.0"}, ["doctor/old-onnxruntime"]),
        ({"onnxruntime": "1.31.0", "onnxruntime-gpu": "1.31.0"}, ["doctor/two-onnxruntimes"]),
        ({"torch": "2.13.0+cpu"}, []),
        ({"torch": "2.10.1"}, ["doctor/old-torch"]),
        ({"torch": "nightly"}, []),
    ],
)
def test_pairs_of_versions(versions: dict[str, str], expected: list[str]) -> None:
    assert ids(Found(CORE | versions)) == expected


@pytest.mark.parametrize(
    ("package", "tested", "version", "newer"),
    [
        ("torch", "2.13.0", "2.14.0", True),
        ("torch", "2.13.0", "3.0", True),
        ("torch", "2.13.0", "2.13.9+cpu", False),
        ("torch", "2.13.0", "2.12.1", False),
        ("torch", "2.13.0", "nightly", False),
        ("onnxruntime-gpu", "1.32.0", "1.33.0", True),
        ("onnxruntime-gpu", "1.32.0", "1.32.1", False),
        ("protobuf", "7.36.2", "8.0.0", True),
    ],
)
def test_a_version_that_is_newer_than_tested(
    package: str, tested: str, version: str, newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "NEWEST_TESTED", {**NEWEST_TESTED, package.removesuffix("-gpu"): tested})
    assert ids(Found(CORE | {package: version})) == ["doctor/newer-than-tested"] * newer


def test_packages_that_are_newer_than_tested_are_one_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "NEWEST_TESTED", {**CORE, "torch": "2.13.0", "onnxruntime": "1.32.0"})
    monkeypatch.setattr(room, "_versions", lambda: CORE | {"torch": "2.15.0+cu130", "onnxruntime": "1.40.1"})
    monkeypatch.setattr(room, "_ask_onnxruntime", lambda found: None)
    report = doctor()
    (note,) = report.problems
    assert note.what == "2 packages are newer than any that was tested"
    assert note.where == "torch 2.15.0+cu130 (tested: 2.13.0), onnxruntime 1.40.1 (tested: 1.32.0)"
    assert "`pip install 'torch~=2.13.0' 'onnxruntime~=1.32.0'`" in note.fix
    assert (report.verdict, report.headline) == (Verdict.DONE, "no problem found")


def test_a_note_is_not_counted_beside_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_versions", lambda: CORE | {"onnx": "2.0", "torch": "2.1"})
    report = doctor()
    assert [each.id for each in report.problems] == ["doctor/old-torch", "doctor/newer-than-tested"]
    assert report.headline == "1 problem found"


def test_every_tested_package_is_looked_up() -> None:
    def is_installed(name: str) -> bool:
        try:
            return bool(metadata.version(name))
        except metadata.PackageNotFoundError:
            return False

    assert {name for name in NEWEST_TESTED if is_installed(name)} <= set(room._versions())


def test_torch_without_onnxscript() -> None:
    versions = {name: version for name, version in CORE.items() if name != "onnxscript"} | {"torch": "2.13"}
    assert ids(Found(versions)) == ["doctor/core-missing"]


def test_onnx_ahead_of_onnxruntime() -> None:
    versions = CORE | {"onnxruntime": "1.31.0"}
    same = Found(versions, onnx_ir=13, onnx_opset=26, runtime_ir=13, runtime_opset=26)
    newer = Found(versions, onnx_ir=14, onnx_opset=26, runtime_ir=13, runtime_opset=26)
    assert (ids(same), ids(newer)) == ([], ["doctor/onnx-ahead"])


def test_a_provider_that_does_not_start_and_one_that_is_hidden() -> None:
    versions = CORE | {"onnxruntime-gpu": "1.31.0"}
    stuck = Found(versions, providers={"CUDAExecutionProvider": False, "CPUExecutionProvider": True})
    hidden = Found(versions, providers={"CPUExecutionProvider": True})
    assert ids(stuck) == ["doctor/provider-fallback"]
    assert ids(hidden) == ["doctor/gpu-hidden"]


@pytest.mark.parametrize(("version", "wrong"), [("10.15.1", False), ("11.4.0", True)])
def test_a_tensorrt_that_onnxruntime_does_not_load(version: str, wrong: bool) -> None:
    versions = CORE | {"onnxruntime-gpu": "1.32.0", "tensorrt-cu12": version}
    found = Found(versions, providers={"CUDAExecutionProvider": True, "CPUExecutionProvider": True})
    assert ids(found) == ["doctor/tensorrt-version"] * wrong


def test_a_crash_of_onnxruntime_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(**_: Any) -> dict[str, Any]:
        raise problem("runtime/died", "onnxruntime crashed (signal SIGSEGV)")

    monkeypatch.setattr(room, "_versions", lambda: CORE | {"onnxruntime": "1.31.0"})
    monkeypatch.setattr(runtime, "available_providers", lambda: {"providers": ["CPUExecutionProvider"]})
    monkeypatch.setattr(runtime, "limits", crash)
    report = doctor()
    assert report.verdict is Verdict.DONE
    (broken,) = report.problems
    assert broken.id == "doctor/runtime-broken"
    assert "SIGSEGV" in broken.why
    assert report.part(Environment).providers[0].starts is None


def test_a_broken_or_missing_core_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_versions", lambda: {name: CORE[name] for name in CORE if name != "numpy"})
    report = doctor()
    assert report.verdict is Verdict.FAILED
    assert [each.id for each in report.problems] == ["doctor/core-missing"]
    monkeypatch.setattr(room, "_versions", lambda: dict(CORE))
    monkeypatch.setitem(sys.modules, "onnxsmith.graph.structure.versions", None)
    report = doctor()
    assert report.verdict is Verdict.FAILED
    assert [each.id for each in report.problems] == ["doctor/core-broken"]


def test_what_is_optional_is_listed_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_versions", lambda: dict(CORE))
    report = doctor()
    packages = {package.name: package for package in report.part(Environment).packages}
    assert not report.problems
    assert packages["torch"].version is None
    assert packages["torch"].install == 'pip install "onnxsmith[torch]"'
