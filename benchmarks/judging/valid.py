"""Valid models that ONNX Runtime runs: odd ones made here, and those of packages. None may be turned away.

Turned away is what ends in `failed`: no verdict could be given, or the file could not be read. Whether ONNX Runtime
takes a model is asked of it here, without onnxsmith; what it does not take counts for nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import onnxsmith
from judging.verdicts import told


def cases(folder: Path, seed: int) -> Iterator[str]:
    """SOURCE/NAME, shuffled, the sources in turn: odd models, files of packages, exports of networks."""
    from judging import odd_models

    rng = np.random.default_rng(seed)
    files = sorted((folder.parent / "real").glob("*.onnx")) + sorted((folder.parent / "light").glob("*.onnx"))
    sources = {
        "odd": sorted(odd_models.names(seed)),
        "package": [f"{path.parent.name}:{path.stem}" for path in files],
        "exported": [path.stem for path in sorted((folder / "exported").glob("*.onnx"))],
    }
    drawn = [[f"{source}/{name}" for name in rng.permutation(names)] for source, names in sources.items() if names]
    while any(drawn):
        for kind in drawn:
            if kind:
                yield kind.pop()


def path_of(folder: Path, case: str, seed: int, target: Path) -> Path:
    """The model's file; an odd one is written to `target`."""
    source, name = case.split("/", 1)
    if source == "package":
        kind, stem = name.split(":", 1)
        return folder.parent / kind / f"{stem}.onnx"
    if source == "exported":
        return folder / "exported" / f"{name}.onnx"
    from judging import odd_models

    onnx.save(odd_models.build(name, seed), target)
    return target


def judge(folder: Path, case: str, seed: int, kept: Path | None) -> dict[str, Any]:
    """`compare m m` and `simplify m -o other`; the status says whether ONNX Runtime takes the model at all."""
    with tempfile.TemporaryDirectory() as text:
        path = path_of(folder, case, seed, Path(text) / "model.onnx")
        why = refused(path)
        if why:
            return {"status": "refused by onnxruntime", "why": why}
        compared, said = told(lambda: onnxsmith.compare(path, path))
        simplified, also = told(lambda: onnxsmith.simplify(path, Path(text) / "other.onnx"))
        wrong = [words for verdict, words in ((compared, said), (simplified, also)) if verdict != "done"]
        if wrong and kept is not None and case.startswith("odd/"):
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"{case.replace('/', '__')}.onnx").write_bytes(path.read_bytes())
    return {"status": "runs", "compare": compared, "simplify": simplified, "said": " || ".join(wrong)}


def refused(path: Path) -> str:
    """Why ONNX Runtime does not load the file; empty where it does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 — whatever it says
        return " ".join(str(error).split())[:200]
    return ""
