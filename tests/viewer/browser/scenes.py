"""Scenes for the tests and the benchmark of the page: made without a model, laid out in the simplest way."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

OPS = [
    ("Conv", "product"),
    ("MatMul", "product"),
    ("Relu", "activation"),
    ("Add", "elementwise"),
    ("Mul", "elementwise"),
    ("LayerNormalization", "normalization"),
    ("Reshape", "shape"),
    ("Transpose", "shape"),
    ("ReduceMean", "reduction"),
    ("Softmax", "activation"),
    ("QuantizeLinear", "quantizer"),
    ("If", "control"),
]
OP = {name: at for at, (name, _) in enumerate(OPS)}


class ModelMaker:
    """Adds nodes, values and rooms to the columns of a model of the scene."""

    def __init__(self, name: str = "model.onnx") -> None:
        self.model: dict[str, Any] = {
            "name": name,
            "path": name,
            "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "facts": [["opset", "20"], ["producer", "onnxsmith"]],
            "ops": [
                {"type": op, "domain": "", "family": family, "doc": f"https://onnx.ai/onnx/operators/onnx__{op}.html"}
                for op, family in OPS
            ],
            "types": [],
            "modules": [],
            "sources": [],
            "nodes": {
                key: []
                for key in ("name", "op", "room", "module", "source", "inputs", "outputs", "attributes", "bodies")
            },
            "values": {key: [] for key in ("name", "type", "producer", "kind")},
            "constants": {},
            "rooms": [],
        }

    def _index(self, column: str, entry: Any) -> int:
        entries: list[Any] = self.model[column]
        if entry not in entries[-50:]:
            entries.append(entry)
        return len(entries) - 1 - entries[::-1].index(entry)

    def value(self, name: str, type_: str = "float32[batch, 64, 56, 56]", kind: int = 0) -> int:
        values = self.model["values"]
        values["name"].append(name)
        values["type"].append(self._index("types", type_) if type_ else -1)
        values["producer"].append(-1)
        values["kind"].append(kind)
        return len(values["name"]) - 1

    def constant(self, name: str, type_: str, **about: Any) -> int:
        value = self.value(name, type_, kind=3)
        self.model["constants"][value] = {"bytes": 0, "file": "", "figures": None, "histogram": [], "text": ""} | about
        return value

    def node(
        self,
        op: str,
        inputs: list[int],
        room: int = 0,
        name: str = "",
        type_: str = "float32[batch, 64, 56, 56]",
        module: str = "",
        line: int = 0,
        attributes: Any = (),
    ) -> tuple[int, int]:
        """A node with one output: the index of both."""
        nodes = self.model["nodes"]
        at = len(nodes["op"])
        name = name or f"node_{op.lower()}_{at}"
        out = self.value(f"{name}_out", type_)
        self.model["values"]["producer"][out] = at
        nodes["name"].append(name)
        nodes["op"].append(OP[op])
        nodes["room"].append(room)
        nodes["module"].append(
            self._index("modules", {"path": module, "type": "torch.nn.modules.Module"}) if module else -1
        )
        nodes["source"].append(
            self._index("sources", {"file": "model.py", "line": line, "text": "x = self.layer(x)"}) if line else -1
        )
        nodes["inputs"].append(inputs)
        nodes["outputs"].append([out])
        nodes["attributes"].append([list(one) for one in attributes])
        nodes["bodies"].append([])
        return at, out

    def room(self, title: str, kind: str = "module", path: str | None = None, parent: int = 0, repeats: int = 1) -> int:
        rooms = self.model["rooms"]
        empty = {
            "items": {"kind": [], "ref": [], "row": [], "x": []},
            "edges": {"from": [], "to": [], "value": [], "bends": []},
        }
        rooms.append(
            {
                "title": title,
                "kind": kind,
                "path": title if path is None else path,
                "parent": parent if rooms else -1,
                "count": 0,
                "repeats": repeats,
            }
            | empty
        )
        return len(rooms) - 1

    def finish(self) -> dict[str, Any]:
        """Gives each room its items, edges and layout: from what is in it, and the values that cross its border."""
        model = self.model
        rooms, nodes, values = model["rooms"], model["nodes"], model["values"]
        children = defaultdict(list)
        for at, room in enumerate(rooms[1:], 1):
            if room["kind"] in ("module", "block"):
                children[room["parent"]].append(at)
        own = defaultdict(list)
        for node, room in enumerate(nodes["room"]):
            own[room].append(node)
        inside: dict[int, set[int]] = {}
        for at in reversed(range(len(rooms))):
            inside[at] = set(own[at]).union(*(inside[child] for child in children[at]))
            rooms[at]["count"] = len(inside[at])
        readers = defaultdict(list)
        for node, read in enumerate(nodes["inputs"]):
            for value in read:
                if value >= 0:
                    readers[value].append(node)
        for at, room in enumerate(rooms):
            _fill(room, at, inside, own[at], children[at], nodes, values, readers)
        return model


def _fill(
    room: Any, at: int, inside: Any, own: list[int], children: list[int], nodes: Any, values: Any, readers: Any
) -> None:
    items: list[tuple[int, int]] = [(0, node) for node in own] + [(1, child) for child in children]
    item_of = {node: item for item, node in enumerate(own)}
    for number, child in enumerate(children):
        item_of |= dict.fromkeys(inside[child], len(own) + number)
    edges: dict[tuple[int, int, int], None] = {}
    ends: dict[tuple[int, int], int] = {}

    def end(kind: int, value: int) -> int:
        if (kind, value) not in ends:
            ends[kind, value] = len(items)
            items.append((kind, value))
        return ends[kind, value]

    for node in inside[at]:
        for value in nodes["inputs"][node]:
            if value < 0 or values["kind"][value] == 3:
                continue
            producer = values["producer"][value]
            source = item_of[producer] if producer in item_of else end(2, value)
            if source != item_of[node]:
                edges[source, item_of[node], value] = None
        for value in nodes["outputs"][node]:
            if values["kind"][value] == 2 or any(reader not in inside[at] for reader in readers[value]):
                edges[item_of[node], end(3, value), value] = None
    _lay_out(room, items, sorted(edges))


def _lay_out(room: Any, items: list[tuple[int, int]], edges: list[tuple[int, int, int]]) -> None:
    """The row of an item is its longest path from an input; items of a row stand beside each other."""
    count = len(items)
    after: list[list[int]] = [[] for _ in range(count)]
    before = [0] * count
    for source, target, _ in edges:
        after[source].append(target)
        before[target] += 1
    row = [0] * count
    ready = [item for item in range(count) if not before[item]]
    while ready:
        item = ready.pop()
        for target in after[item]:
            row[target] = max(row[target], row[item] + 1)
            before[target] -= 1
            if not before[target]:
                ready.append(target)
    used: dict[int, int] = defaultdict(int)
    x = [0.0] * count
    for item in sorted(range(count), key=lambda item: row[item]):
        x[item] = float(used[row[item]])
        used[row[item]] += 1
    bends = []
    for source, target, _ in edges:
        steps = []
        for step in range(row[source] + 1, row[target]):
            steps.append(used[step] - 0.6)
            used[step] += 0.25
        bends.append(steps)
    room["items"] = {"kind": [kind for kind, _ in items], "ref": [ref for _, ref in items], "row": row, "x": x}
    room["edges"] = {
        "from": [edge[0] for edge in edges],
        "to": [edge[1] for edge in edges],
        "value": [edge[2] for edge in edges],
        "bends": bends,
    }


def scene(*models: Any, **more: Any) -> dict[str, Any]:
    count = len(models[0]["nodes"]["op"])
    return {
        "format": 1,
        "headline": f"{models[0]['name']}: {count} nodes",
        "notes": [],
        "models": list(models),
        "overlays": [],
        "difference": None,
        "program": None,
    } | more


def flat(count: int, seed: int = 0) -> dict[str, Any]:
    """One room of `count` nodes: chains with branches and skips, as exporters write them."""
    chance = random.Random(seed)
    maker = ModelMaker(f"flat_{count}.onnx")
    maker.room("main", "graph", "main")
    outs = [maker.value("x", "float32[batch, 3, 224, 224]", kind=1)]
    names = list(OP)[:-1]
    for at in range(count):
        recent = outs[-12:]
        inputs = [recent[-1] if chance.random() < 0.8 else chance.choice(recent)]
        op = chance.choice(names)
        if op in ("Add", "Mul"):
            inputs.append(chance.choice(recent))
        if op == "Conv" and at % 3 == 0:
            inputs.append(maker.constant(f"w{at}", "float32[64, 64, 3, 3]", bytes=147456))
        _, out = maker.node(op, inputs, line=at % 40 + 1, attributes=[("axis", "1", 0)] if op == "Softmax" else [])
        outs.append(out)
    maker.model["values"]["kind"][outs[-1]] = 2
    return scene(maker.finish())


def encoder(blocks: int = 6, name: str = "encoder.onnx", fused: bool = False) -> dict[str, Any]:
    """A transformer's encoder with rooms in rooms; `fused` leaves two nodes of each block out."""
    maker = ModelMaker(name)
    maker.room("main", "graph", "")
    stem = maker.room("embeddings", path="embeddings")
    layers = maker.room("encoder", path="encoder")
    x = maker.value("pixels", "float32[batch, 3, 224, 224]", kind=1)
    weight = maker.constant(
        "embeddings.weight",
        "float32[768, 3, 16, 16]",
        bytes=2359296,
        figures={"min": -0.42, "max": 0.39, "mean": 0.0003, "std": 0.021, "zeros": 0.001, "nan": 0},
        histogram=[1, 2, 5, 11, 30, 80, 190, 320, 410, 330, 180, 77, 31, 12, 4, 1],
    )
    _, h = maker.node(
        "Conv",
        [x, weight],
        stem,
        "patches",
        "float32[batch, 768, 14, 14]",
        "embeddings.projection",
        12,
        [("strides", "[16, 16]", 0), ("kernel_shape", "[16, 16]", 0), ("group", "1", 1), ("auto_pad", "NOTSET", 1)],
    )
    shape = maker.constant("shape", "int64[3]", bytes=24, text="[0, 768, -1]")
    _, h = maker.node("Reshape", [h, shape], stem, "", "float32[batch, 768, 196]", "embeddings", 13)
    _, h = maker.node(
        "Transpose", [h], stem, "", "float32[batch, 196, 768]", "embeddings", 14, [("perm", "[0, 2, 1]", 0)]
    )
    for block in range(blocks):
        h = _block(maker, layers, block, blocks, h, fused)
    head = maker.room("classifier", path="classifier")
    _, h = maker.node("ReduceMean", [h], head, "pool", "float32[batch, 768]", "classifier", 60, [("keepdims", "0", 0)])
    weight = maker.constant("classifier.weight", "float32[768, 1000]", bytes=3072000)
    _, h = maker.node("MatMul", [h, weight], head, "logits", "float32[batch, 1000]", "classifier.fc", 61)
    maker.model["values"]["kind"][h] = 2
    return maker.finish()


def _block(maker: ModelMaker, layers: int, block: int, blocks: int, h: int, fused: bool) -> int:
    path = f"encoder.layer.{block}"
    room = maker.room(f"layer.{block}", "block", path, layers, blocks)
    attention = maker.room("attention", path=f"{path}.attention", parent=room)
    wide = "float32[batch, 196, 768]"
    _, n = maker.node(
        "LayerNormalization",
        [h],
        room,
        f"norm1_{block}",
        wide,
        f"{path}.norm1",
        20,
        [("epsilon", "1e-06", 0), ("axis", "-1", 1)],
    )
    heads = []
    for part in "qkv":
        weight = maker.constant(f"{path}.{part}", "float32[768, 768]", bytes=2359296)
        _, p = maker.node("MatMul", [n, weight], attention, f"{part}_{block}", wide, f"{path}.attention.{part}", 30)
        heads.append(p)
    _, scores = maker.node(
        "MatMul", heads[:2], attention, f"scores_{block}", "float32[batch, 12, 196, 196]", f"{path}.attention", 33
    )
    if not fused:
        scale = maker.constant(f"{path}.scale", "float32[]", bytes=4, text="0.125")
        _, scores = maker.node(
            "Mul", [scores, scale], attention, f"scale_{block}", "float32[batch, 12, 196, 196]", f"{path}.attention", 34
        )
    _, scores = maker.node(
        "Softmax",
        [scores],
        attention,
        f"softmax_{block}",
        "float32[batch, 12, 196, 196]",
        f"{path}.attention",
        35,
        [("axis", "-1", 0)],
    )
    _, a = maker.node("MatMul", [scores, heads[2]], attention, f"context_{block}", wide, f"{path}.attention", 36)
    _, h1 = maker.node("Add", [h, a], room, f"residual1_{block}", wide, path, 40)
    _, n2 = maker.node(
        "LayerNormalization", [h1], room, f"norm2_{block}", wide, f"{path}.norm2", 41, [("epsilon", "1e-06", 0)]
    )
    mlp = maker.room("mlp", path=f"{path}.mlp", parent=room)
    up = maker.constant(f"{path}.up", "float32[768, 3072]", bytes=9437184)
    down = maker.constant(f"{path}.down", "float32[3072, 768]", bytes=9437184)
    _, m = maker.node("MatMul", [n2, up], mlp, f"up_{block}", "float32[batch, 196, 3072]", f"{path}.mlp.up", 50)
    _, m = maker.node("Relu", [m], mlp, f"act_{block}", "float32[batch, 196, 3072]", f"{path}.mlp.act", 51)
    _, m = maker.node("MatMul", [m, down], mlp, f"down_{block}", wide, f"{path}.mlp.down", 52)
    _, out = maker.node("Add", [h1, m], room, f"residual2_{block}", wide, path, 53)
    return out


def with_overlays(blocks: int = 6, seed: int = 1) -> dict[str, Any]:
    """An encoder with times, errors and verdicts, and its program."""
    chance = random.Random(seed)
    model = encoder(blocks)
    count = len(model["nodes"]["op"])
    nodes = list(range(0, count, 2))
    overlays = [
        {
            "title": "time",
            "model": 0,
            "unit": "s",
            "scale": "log",
            "classes": [],
            "worst": "high",
            "nodes": nodes,
            "figures": [10 ** chance.uniform(-6, -2) for _ in nodes],
            "texts": ["median of 20 runs"] * len(nodes),
            "from": "onnxsmith bench, bench.json",
        },
        {
            "title": "error",
            "model": 0,
            "unit": "",
            "scale": "linear",
            "classes": [],
            "worst": "high",
            "nodes": nodes,
            "figures": ["nan", *(chance.random() for _ in nodes[1:])],
            "texts": [""] * len(nodes),
            "from": "compare.json",
        },
        {
            "title": "target",
            "model": 0,
            "unit": "",
            "scale": "classes",
            "classes": ["taken", "slow", "refused"],
            "worst": "high",
            "nodes": list(range(count)),
            "figures": [chance.choice([0, 0, 0, 1, 2]) for _ in range(count)],
            "texts": ["opset too new"] * count,
            "from": "check.json",
        },
    ]
    program = {
        "from": "encoder.py",
        "lines": [
            {
                "name": f"op_{node}",
                "text": f"x{node} = aten.{OPS[model['nodes']['op'][node]][0].lower()}(x{node - 1})",
                "source": model["nodes"]["source"][node],
                "module": model["nodes"]["module"][node],
                "nodes": [node],
            }
            for node in range(count)
        ],
    }
    return scene(model, overlays=overlays, program=program)


def two_with_region() -> tuple[dict[str, Any], list[int], list[int]]:
    """Two models with a region: three nodes in two rooms of the first, two nodes of the second. And these nodes."""
    made = two(2)
    old, new = made["models"]
    wanted = (["up_0", "act_0", "context_0"], ["up_0", "act_0"])
    numbers = [
        [model["nodes"]["name"].index(name) for name in names] for model, names in zip((old, new), wanted, strict=True)
    ]
    found = made["difference"]
    apart = {numbers[1][0], numbers[1][1], new["nodes"]["name"].index("context_0")}
    left = [(pair, found["changes"].get(at)) for at, pair in enumerate(found["pairs"]) if pair[1] not in apart]
    found["pairs"] = [pair for pair, _ in left]
    found["changes"] = {at: lines for at, (_, lines) in enumerate(left) if lines}
    found["removed"] = sorted({*found["removed"], *numbers[0]})
    found["added"] = sorted({*found["added"], *apart})
    found["regions"] = [numbers]
    return made, numbers[0], numbers[1]


def two(blocks: int = 4) -> dict[str, Any]:
    """An encoder before and after a fusion: one node a block is removed, and some have changed."""
    old, new = encoder(blocks, "old.onnx"), encoder(blocks, "new.onnx", fused=True)
    names = {name: at for at, name in enumerate(new["nodes"]["name"])}
    pairs, removed = [], []
    for node, name in enumerate(old["nodes"]["name"]):
        if name.startswith("scale_") or (name not in names and not name.startswith("node_")):
            removed.append(node)
        elif name in names:
            pairs.append([node, names[name], 1 if name.startswith("softmax") else 2 if name == "logits" else 0])
    added = [at for name, at in names.items() if name.startswith("norm2_1")]
    pairs = [pair for pair in pairs if pair[1] not in added]
    changes = {at: ["axis: 1 → -1"] for at, pair in enumerate(pairs) if pair[2] == 1}
    return scene(old, new, difference={"pairs": pairs, "removed": removed, "added": added, "changes": changes})
