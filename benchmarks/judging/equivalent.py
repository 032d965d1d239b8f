"""Equivalent pairs: none may be called different.

One file at every optimisation level, on OpenVINO, in the reference evaluator; a model beside what other tools make of
it; a torch module beside its export. Whether a pair is equivalent is settled by no code of onnxsmith: on feeds of the
benchmark's own the two sides differ by no more than a few times what one unit in the last place does (`visible.py`);
for a torch module by no more than 1e-3 of an output's largest value, because coordinates lose digits that no weight
has. A pair that is not settled is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from judging.bases import Base, bases
from judging.running import Arrays, Runner, feeds
from judging.verdicts import Judged, Run, judged
from judging.visible import FEEDS, Original

TOOLS = ("onnxsim", "onnxslim", "onnxscript", "onnxoptimizer", "ort_basic", "ort_extended")
LEVELS = ("disable-all", "disable-extended", "basic-all")
SETTLED = {"level": 10.0, "tool": 10.0, "openvino": 100.0, "reference": 100.0}
"""How many times the noise an equivalent side may be away, by kind of pair."""
CLOSE = 1e-3
REFERENCE_NODES = 120
"""More than these are too slow in the reference evaluator."""


def cases(folder: Path, seed: int) -> Iterator[str]:
    """KIND/WHAT/MODEL, shuffled, the kinds in turn."""
    from judging import modules

    rng = np.random.default_rng(seed)
    titles = [base.title for base in bases(folder)]
    floats = [title for title in titles if title.endswith("float32")]
    kinds = [
        [f"level/{level}/{title}" for level in LEVELS for title in titles],
        [f"tool/{tool}/{title}" for tool in TOOLS for title in floats],
        [f"openvino/disable/{title}" for title in titles if title.endswith(("float32", "static"))],
        [f"torch/export/{name}" for name in modules.names()],
        [f"reference/all/{title}" for title in floats],
    ]
    drawn = [rng.permutation(kind).tolist() for kind in kinds]
    while any(drawn):
        for kind in drawn:
            if kind:
                yield str(kind.pop())


def judge(folder: Path, case: str) -> dict[str, Any]:
    """Settles the pair, and asks what onnxsmith says."""
    kind, what, *rest = case.split("/")
    if kind == "torch":
        return _torch(folder, rest[0])
    base = next(one for one in bases(folder) if one.title == "/".join(rest))
    if kind == "level":
        return _levels(base, *what.split("-"))
    if kind == "tool":
        return _tool(folder, base, what)
    return _other_runtime(base, kind)


def _record(status: str, ratio: float, said: Judged | None, why: str = "") -> dict[str, Any]:
    found = {"status": status, "ratio": min(ratio, 1e30), "why": why}
    if said is None:
        return found
    return {**found, "verdict": said.verdict, "said": said.said, "seconds": said.seconds, "peers": said.peers}


@lru_cache(maxsize=2)
def _original(base: Base) -> Original:
    return Original(base.model(), list(feeds(base.example(), FEEDS, 0)))


def _ratio(original: Original, run: Callable[[Mapping[str, Any]], Arrays], most: int = FEEDS) -> float:
    pairs = list(zip(original.feeds, original.outputs, strict=True))[:most]
    return max((original.ratio(wanted, run(feed)) for feed, wanted in pairs), default=np.inf)


def _status(kind: str, ratio: float) -> str:
    return "settled" if ratio <= SETTLED[kind] else "unsettled"


def _held(kind: str, base: Base, ratio: float, said: Judged, runs: tuple[Run, Run]) -> dict[str, Any]:
    """The record of a pair, held to the noise of the input on which it was called different, too."""
    if said.verdict != "different" or said.feed is None:
        return _record(_status(kind, ratio), ratio, said)
    try:
        there = Original(base.model(), [dict(said.feed)]).ratio(runs[0](said.feed), runs[1](said.feed))
    except Exception:  # noqa: BLE001 — an input that one side refuses settles nothing more
        there = 0.0
    return _record(_status(kind, max(ratio, there)), max(ratio, there), said)


def _levels(base: Base, first: str, second: str) -> dict[str, Any]:
    runs = Runner(base.path, first).run, Runner(base.path, second).run
    original = _original(base)
    ratio = max(_ratio(original, run) for run in runs)
    sides = (f"{base.path}@onnxruntime:{level}" for level in (first, second))
    return _held("level", base, ratio, judged(*sides, runs, base.example()), runs)


def _tool(folder: Path, base: Base, tool: str) -> dict[str, Any]:
    target = folder / "tools" / tool / f"{base.name}.onnx"
    why = _made(tool, base.path, target)
    if why:
        return _record("not made", 0.0, None, why)
    try:
        made = Runner(target, "disable")
        ratio = _ratio(_original(base), made.run)
    except Exception as error:  # noqa: BLE001 — an invalid or differing interface: nothing to hold equal
        return _record("not made", 0.0, None, " ".join(str(error).split())[:200])
    runs = Runner(base.path, "all").run, Runner(target, "all").run
    return _held("tool", base, ratio, judged(base.path, target, runs, base.example()), runs)


def _made(tool: str, source: Path, target: Path) -> str:
    """Writes what the tool makes of the file, once; why it made nothing otherwise."""
    from measuring.tool_process import TOOLS as MAKERS

    failed = target.with_suffix(".failed")
    if failed.exists():
        return failed.read_text()
    if target.exists():
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    failed.write_text("ended without a word")
    try:
        if tool == "ort_extended":
            Runner(source, "extended", write=target)
        else:
            MAKERS[tool.replace("_", "-")][1](str(source), str(target))
        onnx.load(target)
    except BaseException as error:  # noqa: BLE001 — some end the process
        failed.write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        return failed.read_text()
    failed.unlink()
    return ""


def _other_runtime(base: Base, kind: str) -> dict[str, Any]:
    model = base.model()
    if kind == "reference" and len(model.graph.node) > REFERENCE_NODES:
        return _record("not made", 0.0, None, "too slow in the reference evaluator")
    try:
        run = openvino(base.path) if kind == "openvino" else reference(model)
        ratio = _ratio(_original(base), run, most=4)
    except Exception as error:  # noqa: BLE001 — what that runtime does not take
        return _record("not made", 0.0, None, " ".join(str(error).split())[:200])
    runs = Runner(base.path, "all").run, run
    return _held(kind, base, ratio, judged(base.path, f"{base.path}@{kind}", runs, base.example()), runs)


def openvino(path: Path) -> Callable[[Mapping[str, Any]], Arrays]:
    """OpenVINO on the processor, in float32."""
    import openvino as ov

    core = ov.Core()
    compiled = core.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    names = [port.name for port in onnx.load(path, load_external_data=False).graph.output]

    def run(feed: Mapping[str, Any]) -> Arrays:
        found = compiled(dict(feed))
        return {name: np.array(found[port]) for name, port in zip(names, compiled.outputs, strict=True)}

    return run


def reference(model: onnx.ModelProto) -> Callable[[Mapping[str, Any]], Arrays]:
    """The reference evaluator of onnx."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)

    def run(feed: Mapping[str, Any]) -> Arrays:
        named = zip(evaluator.output_names, evaluator.run(None, dict(feed)), strict=True)
        return {name: value for name, value in named if isinstance(value, np.ndarray)}

    return run


def _torch(folder: Path, name: str) -> dict[str, Any]:
    import torch

    from judging import modules

    target = folder / "torch" / f"{name}.onnx"
    try:
        case = modules.export(name, target)
        runner = Runner(target, "all")
    except Exception as error:  # noqa: BLE001 — what torch cannot export
        return _record("not made", 0.0, None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    ports = [port.name for port in runner.session.get_inputs()]

    def eager(feed: Mapping[str, Any]) -> Arrays:
        with torch.no_grad():
            given = case.module(*(torch.from_numpy(np.array(feed[port])) for port in ports))
        leaves = torch.utils._pytree.tree_leaves(given)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        return {name: tensor.numpy() for name, tensor in zip(runner.outputs, tensors, strict=True)}

    example = dict(zip(ports, (value.numpy() for value in case.args), strict=True))
    apart = max(_apart(eager(feed), runner.run(feed)) for feed in feeds(example, 4, 0))
    said = judged((case.module, case.args), target, (eager, runner.run), example)
    return _record("settled" if apart <= CLOSE else "unsettled", apart, said)


def _apart(wanted: Arrays, got: Arrays) -> float:
    """The largest difference relative to an output's largest value."""
    found = 0.0
    for name, array in wanted.items():
        if array.dtype.kind != "f" or array.shape != got[name].shape:
            found = max(found, 0.0 if np.array_equal(array, got[name]) else np.inf)
        elif array.size:
            with np.errstate(all="ignore"):
                difference = np.abs(array.astype(np.float64) - got[name].astype(np.float64))
            scale = float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) or 1.0
            found = max(found, float(np.nan_to_num(difference, nan=0.0, posinf=0.0).max()) / scale)
    return found
