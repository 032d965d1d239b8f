"""Valid models that ONNX Runtime runs: odd ones made here, and those of packages. None may be turned away.

Turned away is what ends in `failed`: no verdict could be given, or the file could not be read. Whether ONNX Runtime
takes a model is asked of it here, without onnxsmith; what it does not take counts for nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import onnxsmith
from judging.verdicts import told


def cases(folder: Path, seed: int) -> Iterator[str]:
    """SOURCE/NAME, shuffled, the sources in turn: odd models, files of packages, exports of networks."""
    rng = np.random.default_rng(seed)
    files = sorted((folder.parent / "real").glob("*.onnx")) + sorted((folder.parent / "light").glob("*.onnx"))
    sources = {
        "odd": sorted(odd(folder)),
        "package": [f"{path.parent.name}:{path.stem}" for path in files],
        "exported": [path.stem for path in sorted((folder / "exported").glob("*.onnx"))],
    }
    drawn = [[f"{source}/{name}" for name in rng.permutation(names)] for source, names in sources.items() if names]
    while any(drawn):
        for kind in drawn:
            if kind:
                yield kind.pop()


@lru_cache(maxsize=1)
def odd(folder: Path) -> dict[str, Any]:
    """The odd models by name, written to FOLDER/odd."""
    from judging.odd_models import odd_models

    (folder / "odd").mkdir(parents=True, exist_ok=True)
    return {made.name: made for made in odd_models(folder / "odd")}


def judge(folder: Path, case: str) -> dict[str, Any]:
    """`compare m m` and `simplify m -o other`; the status says whether ONNX Runtime takes the model at all."""
    source, name = case.split("/", 1)
    if source == "odd":
        from judging.odd_models import runs

        made = odd(folder)[name]
        path, why = made.path, runs(made.path, made.feeds)
    else:
        kind, _, stem = name.rpartition(":")
        path = folder.parent / kind / f"{stem}.onnx" if kind else folder / "exported" / f"{stem}.onnx"
        why = refused(path)
    if why:
        return {"status": "refused by onnxruntime", "why": why}
    with tempfile.TemporaryDirectory() as text:
        compared, said = told(lambda: onnxsmith.compare(path, path, thorough=True))
        simplified, also = told(lambda: onnxsmith.simplify(path, Path(text) / "other.onnx"))
    wrong = [words for verdict, words in ((compared, said), (simplified, also)) if verdict != "done"]
    return {"status": "runs", "compare": compared, "simplify": simplified, "said": " || ".join(wrong)}


def refused(path: Path) -> str:
    """Why ONNX Runtime does not load the file; empty where it does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 — whatever it says
        return " ".join(str(error).split())[:200]
    return ""
