"""`diagnose`: planted faults are named with their line, and what it says to paste works."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import onnxsmith
from onnxsmith.report.parts.diagnosis import Diagnosis, Finding

PLANTED = sorted((Path(__file__).parent / "planted").glob("*.py"))


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"planted_{path.stem}_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.while_loop and scan look there for the functions that they follow
    spec.loader.exec_module(module)
    return module


def pasted(path: Path, findings: tuple[Finding, ...]) -> str:
    """The file with every suggestion in its place, from the last line to the first."""
    lines = path.read_text().splitlines()
    own = {(f.first, f.last): f.code for f in findings if f.first and f.problem.where.startswith(f"{path}:")}
    for (first, last), code in sorted(own.items(), reverse=True):
        lines[first - 1 : last] = code.splitlines()
    return "\n".join(lines) + "\n"


def exported(module: ModuleType, built: tuple[Any, Any]) -> onnxsmith.Result:
    net, args = built
    if hasattr(module, "after"):
        args = module.after(net, args)
    return onnxsmith.export(
        net,
        args,
        dynamic=getattr(module, "DYNAMIC_AFTER", module.DYNAMIC) or None,
        opset=getattr(module, "OPSET_AFTER", module.OPSET),
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", PLANTED, ids=[path.stem for path in PLANTED])
def test_a_planted_fault_is_named_and_mended(path: Path, tmp_path: Path) -> None:
    module = imported(path)
    net, args = module.build()
    result = onnxsmith.diagnose(net, args, dynamic=module.DYNAMIC or None, opset=module.OPSET)
    found = result.report.part(Diagnosis).findings
    marked = [number for number, line in enumerate(path.read_text().splitlines(), 1) if "# <- here" in line]
    wanted = {(module.EXPECTED, f"{path}:{number}") for number in marked}
    named = {(f.problem.id, f.problem.where) for f in found}
    assert wanted <= named, named
    assert module.EXPECTED in {f.problem.id for f in found}, named
    if hasattr(module, "mended"):
        mended, built = module, module.mended()
    else:
        (tmp_path / "mended.py").write_text(pasted(path, found))
        mended = imported(tmp_path / "mended.py")
        built = mended.build()
    assert exported(mended, built).ok
