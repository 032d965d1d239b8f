"""Models and scenes of them for the tests of `view`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.model_scene import Viewed, viewed
from onnxsmith.viewer.scene import NODE, ROOM, Room
from onnxsmith.viewer.scene_assembly import with_shapes

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def chain(ops: Sequence[str]) -> ir.Model:
    """A model of unary operators, one after the other: a name such as `Relu@layers.0.act` names a torch module,
    `Relu:/layers/0/act` a node."""
    lines, last = [], "x"
    for at, one in enumerate(ops):
        lines.append(f"v{at} = {re.split('[@:]', one)[0]}({last})")
        last = f"v{at}"
    body = "\n".join([*lines, f"y = Identity({last})"])
    model = from_text(f"{HEAD}g (float[N] x) => (float[N] y) {{ {body} }}")
    for one, node in zip(ops, model.graph, strict=False):
        if "@" in one:
            in_module(node, one.partition("@")[2])
        elif ":" in one:
            node.name = f"{one.partition(':')[2]}/{node.op_type}"
    return model


def in_module(node: ir.Node, path: str, calls: Sequence[str] | None = None) -> None:
    """Writes the torch module of a node as torch's exporter does; `calls` are the modules around it."""
    steps = path.split(".")
    around = [".".join(steps[: at + 1]) for at in range(len(steps))] if calls is None else list(calls)
    node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(["", *around, node.name or node.op_type.lower()])
    kinds = ["m.Model", *(f"m.{step.rpartition('.')[2].title()}" for step in around), "aten"]
    node.metadata_props["pkg.torch.onnx.class_hierarchy"] = repr(kinds)


def scene_of(model: ir.Model | str) -> Viewed:
    """The scene of a model, of which a copy has inferred shapes."""
    source = from_text(model) if isinstance(model, str) else model
    copy, told, _ = with_shapes(source, own=False)
    found = viewed(copy, None, told)
    assert_sound(found)
    return found


def contents(found: Viewed, room: Room) -> list[str]:
    """The operators and titles of the nodes and rooms in a room, in the order of its rows."""
    rows = sorted(zip(room.items.row, room.items.x, room.items.kind, room.items.ref, strict=True))
    model = found.scene
    return [
        model.ops[model.nodes.op[ref]]["type"] if kind == NODE else model.rooms[ref].title
        for _, _, kind, ref in rows
        if kind in (NODE, ROOM)
    ]


def assert_sound(found: Viewed) -> None:
    """What holds for every scene: lists of equal length, indices inside, edges down, every node in one room."""
    model = found.scene
    for columns in (model.nodes, model.values):
        assert len({len(column) for column in vars(columns).values()}) == 1
    shown: dict[int, int] = {}
    for number, room in enumerate(model.rooms):
        items, edges = room.items, room.edges
        assert len({len(column) for column in vars(items).values()}) == 1
        assert len({len(column) for column in vars(edges).values()}) == 1
        for kind, ref in zip(items.kind, items.ref, strict=True):
            if kind == NODE:
                assert ref not in shown
                shown[ref] = number
                assert model.nodes.room[ref] == number
            elif kind == ROOM:
                assert model.rooms[ref].parent == number
            else:
                assert 0 <= ref < len(model.values.name)
        for one, other, bends in zip(edges.from_, edges.to, edges.bends, strict=True):
            assert items.row[other] - items.row[one] == len(bends) + 1
        places = sorted(zip(items.row, items.x, strict=True))
        for (row, x), (next_row, next_x) in itertools.pairwise(places):
            assert row != next_row or next_x - x > 1
    assert sorted(shown) == list(range(len(model.nodes.name)))
    paths = [room.path for room in model.rooms]
    assert len(set(paths)) == len(paths)
