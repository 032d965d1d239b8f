"""Keeps the models that verbs write in tests: `--written=FOLDER`. benchmarks/declarations.py runs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from onnxsmith.base.report.base import ModelFile, Report
from onnxsmith.graph import model_identity


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("tiers").addoption(
        "--written", type=Path, metavar="FOLDER", help="keeps a copy of each model that a verb writes"
    )


@pytest.fixture(scope="session", autouse=True)
def _keeps_written(request: pytest.FixtureRequest) -> Iterator[None]:
    folder = request.config.getoption("--written")
    if folder is None:
        yield
        return
    usual = model_identity.identified

    def identified(report: Report, before: Iterable[ModelFile], renamed: Iterable[str] = ()) -> Report:
        found = usual(report, before, renamed)
        for file in found.models:
            if file.role == "written" and file.path.endswith(".onnx"):
                _keep(file, folder)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_identity, "identified", identified)
        yield


def _keep(file: ModelFile, folder: Path) -> None:
    """Copies a model with its data files to a folder whose name is its hash. Equal models are kept once."""
    kept = folder / file.sha256
    if kept.exists():
        return
    source = Path(file.path)
    kept.mkdir(parents=True)
    for name in (source.name, *(data.name for data in file.data)):
        if (source.parent / name).is_file():
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.parent / name, kept / name)
