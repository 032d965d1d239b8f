"""Profiles: every microsecond is attributed or said not to be, and fused kernels are traced to their nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.measurements import Profile
from onnxsmith.deployment.benching.profiling import Numbered
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes._onnxruntime_host import kernels
from tests.conftest import Refused
from tests.deployment.benching.models import HEAD, saved

SHORT = 0.01
LOOP = (
    HEAD
    + """g (float[n,64] x) => (float[n,64] y) {
  often = Constant <value = int64 {20}> ()
  yes = Constant <value = bool {1}> ()
  y = Loop (often, yes, x) <body = b (int64 i, bool c, float[n,64] s) => (bool d, float[n,64] t)
    { d = Identity(c) r = Tanh(s) t = Exp(r) }> }"""
)
MODULES = ["stem.conv", "stem.act", "body.conv", "body.act", "", "", "head", ""]


def convs(folder: Path) -> str:
    """Two convolutions with activations and a product, with the names of torch modules."""
    random, path = np.random.default_rng(0), folder / "m.onnx"
    with onnxsmith.build(path, opset=20) as g:
        x = g.input("x", "float32", [2, 3, 16, 16])
        for inside, outside in ((3, 16), (16, 32)):
            w = random.standard_normal((outside, inside, 3, 3)).astype(np.float32)
            x = g.Relu(g.Conv(x, w, pads=[1, 1, 1, 1]))
        product = g.MatMul(g.Flatten(g.GlobalAveragePool(x)), random.standard_normal((32, 5)).astype(np.float32))
        g.output("y", g.Softmax(product))
    model = load(path)
    for node, module in zip(model.graph, MODULES, strict=True):
        parts = module.split(".")
        scopes = ["", *(".".join(parts[: i + 1]) for i in range(len(parts))), "operation"]
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(scopes)
    save(model, folder / "named.onnx")
    return str(folder / "named.onnx")


def profile(path: str, level: str = "all") -> Profile:
    sizes = {"n": 64} if path.endswith("loop.onnx") else {}
    result = onnxsmith.bench(path, subjects=[f"onnxruntime:{level}"], sizes=sizes, seconds=SHORT, profile=True)
    assert result.ok, result.report.problems
    return result.report.part(Profile)


@pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
def test_every_microsecond_is_accounted_for(tmp_path: Path, level: str) -> None:
    part = profile(convs(tmp_path), level)
    total = sum(one.seconds for one in part.kernels)
    assert total > 0
    assert part.attributed + part.unattributed == pytest.approx(total)
    assert sum(one.seconds for one in part.operators) == pytest.approx(total)
    assert sum(one.seconds for one in part.modules if one.depth == 0) == pytest.approx(part.attributed)
    assert sum(one.own for one in part.modules) == pytest.approx(part.attributed)
    assert total <= part.run * 1.01


@pytest.mark.parametrize("level", ["extended", "all"])
def test_fused_kernels_belong_to_the_module_that_holds_their_nodes(tmp_path: Path, level: str) -> None:
    part = profile(convs(tmp_path), level)
    assert part.by == "module"
    fused = [one for one in part.kernels if one.computes == ("Conv", "Relu")]
    assert {one.module for one in fused} == {"stem", "body"}
    heads = [one for one in part.kernels if one.op in ("MatMul", "Gemm", "FusedMatMul")]
    assert [one.module for one in heads] == ["head"]
    assert part.unattributed <= 0.5 * part.run  # a conversion of layout may belong to no node


def test_without_optimisation_every_node_is_its_own_kernel(tmp_path: Path) -> None:
    path = convs(tmp_path)
    part = profile(path, "disable")
    assert sorted(one.op for one in part.kernels) == sorted(node.op_type for node in load(path).graph)
    assert all(len(one.nodes) == 1 and one.attributed for one in part.kernels)


def test_a_body_counts_for_itself_and_not_for_its_loop(tmp_path: Path) -> None:
    path = saved(tmp_path, LOOP, "loop.onnx")
    part = profile(path, "disable")
    loop = next(one for one in part.kernels if one.op == "Loop")
    inner = [one for one in part.kernels if one.op in ("Tanh", "Exp")]
    assert len(inner) == 2
    assert all(one.attributed for one in part.kernels)
    assert loop.seconds < part.run - sum(one.seconds for one in inner) + 1e-9
    assert sum(one.seconds for one in part.kernels) <= part.run * 1.01


def test_only_onnxruntime_is_profiled(tmp_path: Path, refused: Refused) -> None:
    with refused("bench/no-profile"):
        onnxsmith.bench(convs(tmp_path), subjects=["reference"], seconds=SHORT, profile=True)
    both = onnxsmith.bench(convs(tmp_path), subjects=["onnxruntime", "reference"], seconds=SHORT, profile=True)
    assert both.ok
    assert "reference has no profile that can be read" in both.report.notes[0]


def test_events_inside_an_event_are_taken_out_of_it() -> None:
    def event(name: str, ts: int, dur: int) -> dict[str, object]:
        return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": 1, "args": {"op_name": name[0], "provider": "p"}}

    found = kernels(
        [
            event("model_run", 0, 100),
            event("L_kernel_time", 10, 50),
            event("A_kernel_time", 15, 20),
            event("B_kernel_time", 35, 10),
            event("C_kernel_time", 70, 5),
            event("model_run", 200, 100),
            event("C_kernel_time", 210, 7),
        ]
    )
    assert found["whole"] == [100.0, 100.0]
    assert [[(name, time) for name, *_, time in run] for run in found["runs"]] == [
        [("L", 20.0), ("A", 20.0), ("B", 10.0), ("C", 5.0)],
        [("C", 7.0)],
    ]


def test_names_of_fusions_are_traced_and_others_are_not() -> None:
    model = from_text(HEAD + "g (float[n] x) => (float[n] y) { a = Exp(x) b = Neg(a) c = Tanh(b) y = Neg(c) }")
    numbered = Numbered(model)
    optimised = [
        {"name": "fused onnxsmith.0", "inputs": ["x"], "outputs": ["new"]},  # by the name
        {"name": "c_nchwc", "inputs": ["new", "b"], "outputs": ["token"]},  # by the tensor in the name
        {"name": "convert", "inputs": ["token"], "outputs": ["c"]},  # the same tensor in another layout
        {"name": "onnxsmith.3", "inputs": ["c"], "outputs": ["y"]},
        {"name": "own", "inputs": ["x"], "outputs": ["other"]},
    ]
    found = [[node.op_type for node in nodes] for nodes in numbered.sources(optimised)]
    assert found == [["Exp"], ["Tanh"], ["Tanh"], ["Neg"], []]


def test_a_missing_size_is_said_before(tmp_path: Path, refused: Refused) -> None:
    with refused("bench/unsized"):
        onnxsmith.bench(saved(tmp_path, LOOP), profile=True)
