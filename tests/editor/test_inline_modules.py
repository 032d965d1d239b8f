"""`outline` and `inline` keep the torch modules of nodes, and the declared shapes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

import onnxsmith
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, walk

TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[n,4] y) {
  [net_0_act] a = Tanh(x)
  [net_0_neg] b = Neg(a)
  [net_0] c = Abs(b)
  [net_1_act] d = Tanh(c)
  [net_1_neg] e = Neg(d)
  [net_1] f = Abs(e)
  y = Relu(f)
}"""
PREFIX = "pkg.torch.onnx."


def model(*, shapes: bool = True) -> ir.Model:
    """The model with the metadata that torch's exporter writes."""
    made = inferred(from_text(TEXT))[0] if shapes else from_text(TEXT)
    for at, node in enumerate(made.graph):
        if not node.name or not node.name.startswith("net"):
            continue
        parts = node.name.split("_")
        paths = ["", *(".".join(parts[:count]) for count in range(1, len(parts) + 1))]
        said = {
            f"{PREFIX}name_scopes": repr([*paths, f"op_{at}"]),
            f"{PREFIX}class_hierarchy": repr([*(f"C{n}" for n in range(len(paths))), "aten.op"]),
            f"{PREFIX}fx_node": f"%op_{at}",
            "namespace": "/".join(f"{path}: C" for path in paths),
        }
        node.metadata_props.update(said)
    return made


def modules(made: ir.Model) -> list[str]:
    return [provenance.of(node).module for node in made.graph]


def edited(made: ir.Model, path: Path, *steps: tuple[str, dict[str, object]]) -> ir.Model:
    onnxsmith.save(made, path)
    with onnxsmith.edit(path) as m:
        for name, fields in steps:
            getattr(m, name)(**fields)
    return load(path)


def test_a_call_is_of_its_module_and_its_nodes_go_back_to_theirs(tmp_path: Path) -> None:
    path, before = tmp_path / "m.onnx", modules(model())
    called = edited(model(), path, ("outline", {"to": "my::F", "module": "net.*"}))
    assert modules(called) == ["net.0", "net.1", ""]
    back = edited(called, path, ("inline", {}))
    assert modules(back) == before
    named = {node.outputs[0].name: node for node in back.graph}
    assert [provenance.fx_name(node) for node in back.graph][:6] == ["op_0", "op_1", "op_2", "", "", ""]
    props = list(back.graph)[4].metadata_props
    assert props["namespace"] == ": C/net: C/net.1: C/net.1.neg: C"
    assert f"{PREFIX}fx_node" not in props
    assert not [key for node in named.values() for key in node.metadata_props if key.startswith("onnxsmith.")]


def test_functions_in_functions(tmp_path: Path) -> None:
    path, before = tmp_path / "m.onnx", modules(model())
    outer = ("outline", {"to": "my::F", "module": "net.*"})
    inner = ("outline", {"to": "my::G", "find": "Neg(Tanh(x))"})
    nested = edited(model(), path, outer, inner)
    assert len(nested.functions) == 2
    assert modules(edited(nested, path, ("inline", {}))) == before
    for first in ("my::G", "my::F"):
        made = edited(edited(model(), path, outer, inner), path, ("inline", {"function": first}))
        assert not [
            key
            for node in walk.all_nodes(made)
            for holder in (node, *node.outputs)
            for key in holder.metadata_props
            if key.startswith(("onnxsmith.call", "onnxsmith.name", "onnxsmith.modules"))
        ]
        assert modules(edited(made, path, ("inline", {}))) == before


def test_shapes_are_declared_again_where_the_file_declares_shapes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for shapes in (True, False):
        edited(model(shapes=shapes), path, ("outline", {"to": "my::F", "module": "net.*"}))
        with onnxsmith.edit(path) as m:
            m.inline()
        declared = onnx.load(path).graph.value_info
        assert len(declared) == (6 if shapes else 0)
