"""`diagnose` beside the message of plain torch, on the planted faults of the tests: is the line named, does a fix work?

    python benchmarks/diagnosis.py [--only NAME …]

A fault counts for plain torch when the text of its error, or of a warning, names the line that is marked in the file.
It counts for onnxsmith when a finding has the expected id and that line, and the module with the suggestion pasted (or,
where a case says so, mended as the suggestion says) exports, verified.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

import onnxsmith
from onnxsmith.base.report.parts.capture import Diagnosis

TESTS = Path(__file__).parent.parent / "tests" / "exporter" / "test_diagnose.py"


def tests() -> Any:
    """The module of the tests, which knows how to read and mend a planted fault."""
    spec = importlib.util.spec_from_file_location("test_diagnose", TESTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marked(path: Path) -> list[int]:
    """The lines that hold the fault."""
    return [number for number, line in enumerate(path.read_text().splitlines(), 1) if "# <- here" in line]


def torch_names_it(path: Path) -> bool:
    """Whether plain torch says which line it is; asked in a process of its own, which it ends on some faults."""
    return subprocess.run([sys.executable, __file__, "--plain", path], capture_output=True, check=False).returncode == 0


def named_here(path: Path, case: Any) -> bool:
    """The same, asked in this process."""
    net, args = case.build()
    said = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stderr(said),
        tempfile.TemporaryDirectory() as f,
    ):
        warnings.simplefilter("always")
        try:
            torch.onnx.export(
                net, tuple(args), str(Path(f) / "m.onnx"), dynamo=True, verbose=False, opset_version=case.OPSET
            )
        except Exception as error:  # noqa: BLE001 — its text is what is measured
            said.write(str(error))
    lines = {(one.filename, one.lineno) for one in warned}
    return any(
        f'{path}", line {n}' in said.getvalue() or f"{path}:{n}" in said.getvalue() or (str(path), n) in lines
        for n in marked(path)
    )


def ours_mends_it(path: Path, case: Any, helpers: Any) -> bool:
    """Whether `diagnose` names id and line, and what it says works."""
    net, args = case.build()
    result = onnxsmith.diagnose(net, args, dynamic=case.DYNAMIC or None, opset=case.OPSET)
    found = result.report.part(Diagnosis).findings
    named = {(f.problem.id, f.problem.where) for f in found}
    if (
        case.EXPECTED not in {id_ for id_, _ in named}
        or not {(case.EXPECTED, f"{path}:{n}") for n in marked(path)} <= named
    ):
        return False
    with tempfile.TemporaryDirectory() as folder:
        mended = case
        if not hasattr(case, "mended"):
            (Path(folder) / "mended.py").write_text(helpers.pasted(path, found))
            mended = helpers.imported(Path(folder) / "mended.py")
        try:
            return bool(helpers.exported(mended, mended.mended() if hasattr(mended, "mended") else mended.build()).ok)
        except onnxsmith.OnnxsmithError:
            return False


def main() -> None:
    """Prints a line for each fault, and the two counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(TESTS.parent))
    helpers = tests()
    if options.plain:
        sys.exit(not named_here(options.plain, helpers.imported(options.plain)))
    counts = [0, 0]
    paths = [path for path in helpers.PLANTED if not options.only or path.stem in options.only]
    for path in paths:
        case = helpers.imported(path)
        answers = [torch_names_it(path), ours_mends_it(path, case, helpers)]
        counts = [count + answer for count, answer in zip(counts, answers, strict=True)]
        theirs, ours = "names the line" if answers[0] else "-", "mended" if answers[1] else "-"
        print(f"{path.stem}: torch {theirs}, onnxsmith {ours}", flush=True)
    print(f"of {len(paths)} faults: plain torch names the line of {counts[0]}, onnxsmith names and mends {counts[1]}")


if __name__ == "__main__":
    main()
