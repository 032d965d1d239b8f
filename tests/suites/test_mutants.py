"""Mutants of valid files make no verb break; see `benchmarks/stressing/mutants.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.whole
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each mutant runs in a forked process")
def test_no_verb_breaks_on_mutants() -> None:
    words = [sys.executable, "benchmarks/hardening.py", "mutants", "--count", "98", "--seed", "tests"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
