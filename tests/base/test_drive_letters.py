"""Paths of Windows have a colon behind the letter of the drive: what is divided at a colon keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxsmith.deployment.benching import subjects
from onnxsmith.deployment.bundles.identifiers import file_name
from onnxsmith.fleet import one_cell
from onnxsmith.verification.inputs import spec


def test_an_input_is_divided_at_its_first_equals_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(r"C:\x.npy").touch()  # a usual name here
    parsed = spec.parse(r"x=C:\x.npy")
    assert (parsed.name, parsed.path) == ("x", Path(r"C:\x.npy"))


@pytest.mark.parametrize(
    ("short", "name", "is_meant"),
    [
        ("build", r"C:\nets.py:build", True),
        ("nets.py:build", r"C:\work\nets.py:build", True),
        ("build", "nets.py:build", True),
        ("other", r"C:\nets.py:build", False),
        ("speech", "models/speech.onnx", True),
        ("speech", "s3://bucket/speech.onnx", True),
    ],
)
def test_a_cell_is_named_short(short: str, name: str, is_meant: bool) -> None:
    assert one_cell._is_short_for(short, name) is is_meant


def test_the_export_of_a_factory_is_named_after_its_file() -> None:
    fix = subjects._exported_first("tract", "work/net.py:build")
    assert "-o net.onnx" in fix
    assert f"{Path('work/net.py:build')}" in fix


@pytest.mark.parametrize("name", ["con", "NUL", "aux.onnx", "com1", "LPT9.x"])
def test_a_folder_is_not_named_after_a_device(name: str) -> None:
    assert file_name(name) == f"model_{name}"
    assert file_name(f"{name[:3]}sole") == f"{name[:3]}sole"
