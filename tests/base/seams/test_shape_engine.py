"""Inference changes nothing of onnx-shape-inference and onnx-ir for others in the process."""

from __future__ import annotations

import logging
import threading
from typing import Any

import onnx_ir as ir
import onnx_shape_inference as library
import pytest

from onnxsmith.base.seams import shape_engine
from onnxsmith.base.seams.base import private
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.optimizer.simplify import simplify

TEXT = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[a,b] x, float[b,a] z) => (float[n,m] y) '
    "{ t = Add(x, z) s = Shape(t) u = Expand(t, s) y = Max(u, x) }"
)


def state() -> dict[str, Any]:
    """All of the two libraries that inference reaches into."""
    library.registry.collect()
    rules = {
        (domain, name, version): library.registry.get(domain, name, version)
        for domain, name, versions in library.registry.iter_supported()
        for version in versions
    }
    tables = [dict(private(path)) for path in shape_engine._TABLES]
    engine = dict(vars(private("onnx_shape_inference._engine:infer_symbolic_shapes")))
    context = dict(vars(library.ShapeInferenceContext))
    return {
        "rules": rules, "tables": tables, "engine": engine, "context": context,
        "scan": private(shape_engine._SCAN), "level": logging.getLogger("onnx_shape_inference").level,
    }  # fmt: skip


def test_what_others_see_of_the_library_stays() -> None:
    before = state()
    simplify(from_text(TEXT), verify=False)
    inferred(from_text(TEXT))
    assert state() == before


def test_so_it_does_where_inference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    before, failed = state(), []

    def fails(*_: object) -> None:
        failed.append(True)
        raise ZeroDivisionError

    monkeypatch.setattr(shape_engine, "_by_rule", fails)
    inferred(from_text(TEXT))
    assert failed
    monkeypatch.undo()
    assert state() == before


def test_many_threads_infer_what_one_does() -> None:
    def shapes() -> list[str]:
        return [str(value.shape) for node in inferred(from_text(TEXT))[0].graph for value in node.outputs]

    before, alone, found = state(), shapes(), []
    threads = [threading.Thread(target=lambda: found.extend(shapes() for _ in range(10))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [alone] * 40
    assert state() == before


def test_the_library_itself_infers_by_its_own_rules_afterwards() -> None:
    inferred(from_text(TEXT))
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[a] x, float[b] z) => (float[n] y) { y = Add(x, z) }'
    )
    fresh = ir.from_proto(ir.to_proto(model))
    library.infer_symbolic_shapes(fresh, warn_on_missing=False)
    assert "Broadcast" not in str(fresh.graph.outputs[0].shape)


@pytest.mark.parametrize("path", shape_engine.REACHES)
def test_shapes_are_found_without_a_private_name(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = private
    monkeypatch.setattr(shape_engine, "private", lambda asked: None if asked == path else known(asked))
    model, note = inferred(
        from_text(
            '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,3] y) { t = Neg(x) y = Abs(t) }'
        )
    )
    assert note is None
    assert str(model.graph[0].outputs[0].shape) == "[n,3]"


def test_a_block_inside_another_changes_nothing() -> None:
    before = state()
    with shape_engine.walking():
        inside = state()
        with shape_engine.walking():
            assert state() == inside
        assert state() == inside != before
    assert state() == before
