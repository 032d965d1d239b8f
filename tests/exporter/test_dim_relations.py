"""An axis that follows from another keeps its name, and every verb chooses sizes by the relation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from onnx import parser

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import dim_ranges, dim_relations
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.names import fix_symbols, rename_symbols


class Cached(torch.nn.Module):
    """New tokens and kept ones are 32 together."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Linear(8, 8)
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).log())

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        both = torch.cat([past, self.w(x)], 1)
        return (x @ both.transpose(1, 2) + self.mask[32 - x.shape[1] :]).softmax(-1) @ both


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("cached") / "m.onnx"
    example = (torch.rand(1, 12, 8), torch.rand(1, 20, 8))
    return onnxsmith.export(Cached(), example, output=file, dynamic="x:1=seq;past:1=past")


def tried(result: Any) -> tuple[int, ...]:
    return result.report.part(Verification).sizes["seq"]


def test_the_export_tries_sizes_that_fit(exported: Any) -> None:
    assert len(tried(exported)) > 3
    model = load(exported.path)
    assert [str(value.shape) for value in model.graph.inputs] == ["[1,seq,8]", "[1,past,8]"]
    assert dim_relations.relations(model) == {"past": "32 - seq"}


def test_other_verbs_read_the_relation(exported: Any, tmp_path: Path) -> None:
    simple = onnxsmith.simplify(exported.path, tmp_path / "s.onnx")
    assert len(tried(simple)) > 3
    assert dim_relations.relations(load(simple.path)) == {"past": "32 - seq"}
    outputs = onnxsmith.run(simple.path, random=True, sizes={"seq": 5}).outputs
    assert outputs["output"].shape == (1, 5, 8)


def related(**relations: str) -> ir.Model:
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[a] x, float[b] y) => (float[c] z)'
    text = head + " { z = Concat<axis = 0>(x, y) }"
    model = ir.from_proto(parser.parse_model(text))
    dim_relations.record(model, relations)
    return model


def shapes(model: ir.Model) -> list[Any]:
    return [port.shape for port in (*signature(model).inputs, *signature(model).outputs)]


def test_a_signature_has_the_expression() -> None:
    assert shapes(related(b="32 - a")) == [("a",), ("32 - a",), ("c",)]


def test_a_relation_with_an_unknown_name_is_left_out() -> None:
    assert shapes(related(b="32 - q")) == [("a",), ("b",), ("c",)]
    broken = related()
    broken.metadata_props[dim_relations.KEY] = "no JSON"
    assert shapes(broken) == [("a",), ("b",), ("c",)]


def test_a_fixed_size_fixes_what_follows_from_it() -> None:
    model = related(b="32 - a")
    fix_symbols(model, {"a": 12})
    assert shapes(model) == [(12,), (20,), ("c",)]
    assert dim_relations.KEY not in model.metadata_props


def test_a_fixed_name_ends_its_relation() -> None:
    model = related(b="32 - a")
    fix_symbols(model, {"b": 12})
    assert shapes(model) == [("a",), (12,), ("c",)]


def test_a_renamed_dimension_is_renamed_in_the_relation() -> None:
    model = related(b="32 - a")
    rename_symbols(model, {"a": "seq", "b": "past"})
    assert dim_relations.relations(model) == {"past": "32 - seq"}
    assert shapes(model) == [("seq",), ("32 - seq",), ("c",)]


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


@pytest.mark.parametrize("dynamic", ["x:0=b;y:0=b", "image:0=b;y:0=b"])
def test_a_text_may_name_the_arguments_of_forward(dynamic: str) -> None:
    example = (torch.rand(2, 3), torch.rand(2, 3))
    result = onnxsmith.export(Sum(), example, dynamic=dynamic, input_names=["image", "other"])
    assert [(port.name, port.shape) for port in signature(result.model).inputs] == [
        ("image", ("b", 3)),
        ("other", ("b", 3)),
    ]


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x, x[:, :1]], 1) * y


class Joined(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
        return torch.cat([a, b], 1) * both


TIED = {
    "2*n + 1": (Doubled(), (torch.rand(1, 4, 3), torch.rand(1, 9, 3)), "x:1=n;y:1=m"),
    "a + b": (
        Joined(),
        (torch.rand(1, 4, 3), torch.rand(1, 5, 3), torch.rand(1, 9, 3)),
        "a:1=a;b:1=b;both:1=m",
    ),
}


@pytest.mark.parametrize("relation", TIED)
def test_other_relations_are_solved_in_every_verb(relation: str, tmp_path: Path) -> None:
    module, example, dynamic = TIED[relation]
    result = onnxsmith.export(module, example, output=tmp_path / "m.onnx", dynamic=dynamic)
    assert result.report.verdict.exit_code == 0, result.report.headline
    assert dim_relations.relations(load(result.path)) == {"m": relation}
    for found in (
        onnxsmith.simplify(result.path, tmp_path / "s.onnx").report,
        onnxsmith.compare(result.path, tmp_path / "s.onnx", thorough=True).report,
    ):
        checked = found.part(Verification)
        assert checked.refused == 0
        assert len((checked.sizes or {})[relation[-1] if relation == "a + b" else "n"]) > 3
    outputs = onnxsmith.run(result.path, random=True, sizes={"m": 11}).outputs
    assert outputs["output"].shape == (1, 11, 3)


def test_no_size_of_a_relation_is_drawn(exported: Any, tmp_path: Path) -> None:
    for found in (
        onnxsmith.simplify(exported.path, tmp_path / "s.onnx", verify=onnxsmith.Verify(sizes={"past": (4, 20)})).report,
        onnxsmith.compare(exported.path, exported.path, sizes={"past": "4..20"}, thorough=True).report,
    ):
        checked = found.part(Verification)
        assert checked.refused == 0
        assert {12, 28} <= set((checked.sizes or {})["seq"]) <= set(range(12, 29))
        assert checked.ranges == {"past": "4..20"}
    assert onnxsmith.run(exported.path, random=True).report.verdict.exit_code == 0
    assert onnxsmith.check(exported.path, ["onnxruntime"]).report.verdict.exit_code == 0
    assert onnxsmith.bench(exported.path, sizes={"past": 20}, seconds=0.05).report.verdict.exit_code == 0


def test_a_size_outside_of_the_relation_is_refused(exported: Any) -> None:
    for run in (
        lambda: onnxsmith.run(exported.path, random=True, sizes={"seq": 40}),
        lambda: onnxsmith.compare(exported.path, exported.path, sizes={"seq": 40}),
        lambda: onnxsmith.simplify(exported.path, verify=onnxsmith.Verify(sizes={"past": "33.."})),
    ):
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            run()
        assert caught.value.problem.id == "input/size-range"


def test_pieces_and_merged_models_keep_relations_and_ranges(exported: Any, tmp_path: Path) -> None:
    limited = onnxsmith.simplify(exported.path, tmp_path / "l.onnx", verify=onnxsmith.Verify(sizes={"past": "4..20"}))
    assert limited.report.verdict.exit_code == 0
    other = onnxsmith.export(
        torch.nn.ReLU(), (torch.rand(1, 12, 8),), output=tmp_path / "r.onnx", dynamic="input:1=seq"
    )
    found = onnxsmith.merge(limited.path, other.path, tmp_path / "m.onnx", wires={"output": "input"})
    assert found.report.verdict.exit_code == 0, found.report.headline
    merged = load(tmp_path / "m.onnx")
    assert dim_relations.relations(merged) == {"past": "32 - seq"}
    assert dim_ranges.ranges(merged) == {"past": dim_ranges.Range(4, 20)}
    pieces = onnxsmith.split(tmp_path / "m.onnx", tmp_path / "pieces", into=2)
    assert pieces.report.verdict.exit_code == 0, pieces.report.headline
    assert pieces.report.part(Verification).ranges == {"past": "4..20"}
    assert dim_ranges.ranges(load(tmp_path / "pieces" / "piece_0.onnx")) == {"past": dim_ranges.Range(4, 20)}
