"""Fixes of problems of quantising, of pruning and of bisecting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.cli import application
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import gallery
from tests.fixes.harness import Call, Case, helps, parameters

WIDTH, CLASSES = 64, 8
RNG = np.random.default_rng(0)


def weight(*shape: int) -> Any:
    return (RNG.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)


W1, W2, W3 = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, CLASSES)
TEXT = f"""<ir_version: 10, opset_import: ["": 18]>
g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH},{WIDTH}] w2, float[{WIDTH},{CLASSES}] w3)
=> (float[n,{CLASSES}] y) {{
    [first] a = MatMul(x, w1)
    b = Relu(a)
    [second] c = MatMul(b, w2)
    d = Relu(c)
    [last] y = MatMul(d, w3)
}}"""


def filled(text: str, **arrays: Any) -> ir.Model:
    model = from_text(text)
    for value in [one for one in model.graph.inputs if one.name in arrays]:
        value.const_value = ir.tensor(arrays[value.name or ""], name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    return model


def network(path: Path) -> None:
    save(filled(TEXT, w1=W1, w2=W2, w3=W3), path)


def not_finite(path: Path) -> None:
    save(filled(TEXT, w1=np.where(np.arange(WIDTH) == 3, np.float32(np.nan), W1), w2=W2, w3=W3), path)


def drawing(path: Path) -> None:
    text = TEXT.replace("a = MatMul(x, w1)", "e = RandomNormalLike(x) s = Add(x, e) a = MatMul(s, w1)")
    save(filled(text, w1=W1, w2=W2, w3=W3), path)


def half(path: Path) -> None:
    text = TEXT.replace("float[", "float16[")
    save(filled(text, w1=W1.astype(np.float16), w2=W2.astype(np.float16), w3=W3.astype(np.float16)), path)


def labels() -> Any:
    x = DATA["x"]
    return np.argmax(np.maximum(np.maximum(x @ W1, 0) @ W2, 0) @ W3, axis=1)


DATA = {"x": RNG.standard_normal((40, WIDTH)).astype(np.float32)}
LABELLED = {**DATA, "label": labels()}
NET = {"net.onnx": network}
WITH_DATA = {"net.onnx": network, "data.npz": DATA}
WITH_LABELS = {"net.onnx": network, "data.npz": LABELLED}
QUANTIZE = "onnxsmith quantize net.onnx -o small.onnx --no-time --budget 20%"
PRUNE = "onnxsmith prune net.onnx -o small.onnx --no-time"
VARIANCE = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,8] x) => (float[n,8] y) <float big = {300.0}, float one = {1.0}> {
    [scaled] s = Mul(x, big)
    [square] q = Mul(s, s)
    [variance] v = ReduceMean<axes = [-1]>(q)
    [deviation] d = Sqrt(v)
    [off] o = Add(d, one)
    [last] y = Div(s, o)
}"""
HALF = '<ir_version: 8, opset_import: ["": 17]> g (float16[n] x) => (float16[n] y) { y = Exp(x) }'
FUNCTIONS = """
def metric(predictions, labels):
    return sum(int(p.argmax()) == int(label) for p, label in zip(predictions, labels)) / {}

def prepare(item):
    return {{"x": item["{}"]}}

def decode(outputs):
    return int(outputs["{}"].argmax())

def samples():
    import numpy as np
    for seed in range(20):
        yield {{"x": np.random.default_rng(seed).standard_normal({}).astype("float32")}}
"""
RIGHT = FUNCTIONS.format("len(labels)", "x", "y", "(1, 64)")

CASES = [
    Case(
        "quantize/unknown-method",
        f"{QUANTIZE} --to int-8 --data data.npz",
        WITH_DATA,
        by_hand=f"{QUANTIZE} --to int8 --data data.npz",
        says=["int8"],
    ),
    Case(
        "quantize/unknown-metric",
        f"{QUANTIZE} --to int8 --data data.npz --metric accuracy",
        WITH_LABELS,
        by_hand=f"{QUANTIZE} --to int8 --data data.npz --metric top1",
        says=["top1"],
    ),
    Case("quantize/budget", "onnxsmith quantize net.onnx -o small.onnx --no-time --to int8 --budget half", NET),
    Case("quantize/samples", f"{QUANTIZE} --to int8 --data data.npz --samples 0", WITH_DATA),
    Case("quantize/evaluations", f"{QUANTIZE} --to int8 --data data.npz --evaluations 0", WITH_DATA),
    Case(
        "quantize/target",
        f"{QUANTIZE} --to int8 --data data.npz --target qnn",
        WITH_DATA,
        by_hand=f"{QUANTIZE} --to int8 --data data.npz",
        says=["leave --target out"],
    ),
    Case(
        "quantize/range",
        f"{QUANTIZE} --to float16 --range ids=0..5",
        NET,
        by_hand=f"{QUANTIZE} --to float16",
        says=["--range x=0..5"],
    ),
    Case("quantize/target-form", f"{QUANTIZE} --to int8-nncf --data data.npz --target tensorrt-10", WITH_DATA),
    Case(
        "quantize/unknown-layer",
        f"{QUANTIZE} --to int8 --data data.npz --keep keep.txt",
        {**WITH_DATA, "keep.txt": "first\nfifth\n"},
        changes={"keep.txt": "first\nlast\n"},
        says=["lists the names"],
    ),
    Case(
        "quantize/unknown-dim",
        f"{QUANTIZE} --to int8 --dim batch=4",
        NET,
        by_hand=f"{QUANTIZE} --to int8 --dim n=4",
        says=["give one of: n"],
    ),
    Case("quantize/no-data", f"{QUANTIZE} --to int8 --metric top1", WITH_DATA, fill={"DATA": "data.npz"}),
    Case(
        "quantize/data",
        f"{QUANTIZE} --to int8 --data data.csv",
        {**WITH_DATA, "data.csv": "1,2\n"},
        by_hand=f"{QUANTIZE} --to int8 --data data.npz",
        says=["npz"],
    ),
    Case(
        "quantize/data",
        f"{QUANTIZE} --to int8 --data data.jsonl",
        {**NET, "data.jsonl": '{"x": [1, 2\n'},
        changes={"data.jsonl": "".join('{"x": ' + str([[at / 8] * WIDTH]) + "}\n" for at in range(8))},
        says=['{"x": ', "on one line"],
        name="a line",
    ),
    Case(
        "quantize/data",
        f"{QUANTIZE} --to int8 --data own.py:samples",
        {**NET, "own.py": RIGHT.replace("range(20)", "range(20 / 1)")},
        changes={"own.py": RIGHT},
        says=["correct the function at this line"],
        name="a function",
    ),
    Case(
        "quantize/labels",
        f"{QUANTIZE} --to int8 --data data.npz --metric top1",
        {"net.onnx": network, "data.npz": {**DATA, "label": labels() + 8}},
        changes={"data.npz": LABELLED},
        says=["correct the labels"],
    ),
    Case(
        "quantize/metric",
        f"{QUANTIZE} --to int8 --data data.npz --metric own.py:metric",
        {**WITH_LABELS, "own.py": FUNCTIONS.format("0", "x", "y", "(1, 64)")},
        changes={"own.py": RIGHT},
        says=["correct the function at this line"],
    ),
    Case(
        "quantize/blind-score",
        "onnxsmith quantize net.onnx -o small.onnx --no-time --to int8 --data data.npz --metric top1 --budget 20",
        WITH_LABELS,
        by_hand=f"{QUANTIZE} --to int8 --data data.npz --metric top1",
        says=["--budget 20%"],
    ),
    Case(
        "quantize/decode",
        f"{QUANTIZE} --to int8 --data data.npz --metric top1 --decode own.py:decode",
        {**WITH_LABELS, "own.py": FUNCTIONS.format("1", "x", "logits", "(1, 64)")},
        changes={"own.py": RIGHT},
        says=["y float32[1, 8]"],
    ),
    Case(
        "quantize/preprocessing",
        f"{QUANTIZE} --to int8 --data own.py:samples --preprocess own.py:prepare",
        {**NET, "own.py": RIGHT.replace('item["x"]', 'item["image"]')},
        changes={"own.py": RIGHT},
        says=["correct the function"],
    ),
    Case(
        "quantize/same-data",
        f"{QUANTIZE} --to int8 --data data.npz --calibration some.npz",
        {**WITH_DATA, "some.npz": {"x": DATA["x"][:4]}},
        by_hand=f"{QUANTIZE} --to int8 --data data.npz",
        says=["leave --calibration out"],
    ),
    Case(
        "quantize/budget-not-met",
        "onnxsmith quantize net.onnx -o s.onnx --no-time --to int4 --data data.npz --budget 0 --evaluations 2",
        WITH_DATA,
        nth=1,
    ),
    Case("quantize/nothing", f"{QUANTIZE} --to int8", {"net.onnx": half}, nth=1),
    Case(
        "quantize/quantised",
        "onnxsmith quantize small.onnx -o s.onnx --no-time --to int8-dynamic --budget 20%",
        {**NET, "small.onnx": lambda path: _quantised(path)},
        by_hand="onnxsmith quantize net.onnx -o s.onnx --no-time --to int8-dynamic --budget 20%",
        says=["float32 model"],
    ),
    Case(
        "quantize/target-refuses",
        f"{QUANTIZE} --to bfloat16 --data data.npz --target onnxruntime",
        WITH_DATA,
        by_hand=f"{QUANTIZE} --to float16 --data data.npz --target onnxruntime",
        says=["another --to"],
    ),
    Case("prune/share", f"{PRUNE} --share 150%", NET),
    Case("prune/multiple", f"{PRUNE} --multiple 0", NET),
    Case("prune/unknown-measure", f"{PRUNE} --by magnitude", NET, by_hand=f"{PRUNE} --by norm", says=["norm"]),
    Case(
        "prune/unknown-layer",
        f"{PRUNE} --keep keep.txt",
        {**NET, "keep.txt": "fisrt\n"},
        changes={"keep.txt": "first\n"},
        says=["lists the names"],
    ),
    Case("prune/nothing", f"{PRUNE} --share 3%", NET),
    Case("prune/nothing", f"{PRUNE} --multiple 64", NET, name="a multiple"),
    Case(
        "prune/budget-not-met",
        f"{PRUNE} --data data.npz --budget 0",
        WITH_DATA,
    ),
    Case(
        "quantize/random",
        QUANTIZE,
        {**WITH_DATA, "net.onnx": drawing},
        changes=NET,
        says=["in evaluation mode"],
    ),
    Case("prune/ruined", f"{PRUNE} --share 90% --multiple 1 --data data.npz", WITH_DATA),
    Case("prune/not-finite", PRUNE, {"net.onnx": not_finite}, changes=NET, says=["export the network again"]),
    Case(
        "prune/quantised",
        "onnxsmith prune small.onnx -o s.onnx --no-time",
        {**NET, "small.onnx": lambda path: _quantised(path)},
        by_hand="onnxsmith prune net.onnx -o s.onnx --no-time",
        says=["prune the float32 model"],
    ),
    Case(
        "bisect/unknown-dtype",
        "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --to float8",
        {"m.onnx": VARIANCE},
        by_hand="onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --to float16",
        says=["float16"],
    ),
    Case(
        "bisect/tolerance", "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance -1", {"m.onnx": VARIANCE}
    ),
    Case(
        "bisect/tries",
        "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --tries 1",
        {"m.onnx": VARIANCE},
    ),
    Case(
        "bisect/unknown-node",
        "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --keep k0.txt",
        {"m.onnx": VARIANCE, "k0.txt": "sqare\n"},
        changes={"k0.txt": "square\n"},
        says=["lists the names"],
    ),
    Case(
        "bisect/keep-list",
        "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --keep k0.json",
        {"m.onnx": VARIANCE, "k0.json": '["square"'},
        changes={"k0.json": '{"keep": ["square"]}'},
        says=['{"keep": ["name", …]}'],
    ),
    Case("bisect/no-kernels", "onnxsmith bisect m.onnx -o k.txt --to bfloat16 --tolerance 0.1", {"m.onnx": VARIANCE}),
    Case(
        "bisect/nothing-to-narrow",
        "onnxsmith bisect h.onnx -o k.txt",
        {"h.onnx": HALF, "m.onnx": VARIANCE},
        by_hand="onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01",
        says=["float32 model"],
    ),
    Case(
        "verify/nothing-compared",
        "onnxsmith bisect m.onnx -o k.txt --runtime reference --tolerance 0.01 --only-given",
        {"m.onnx": VARIANCE, "inputs.npz": {"x": DATA["x"][:4, :8]}},
    ),
]


def _quantised(path: Path) -> None:
    network(path.with_name("net.onnx"))
    gallery.called(
        application.main,
        [
            "quantize",
            str(path.with_name("net.onnx")),
            "-o",
            str(path),
            "--no-time",
            "--to",
            "int8-dynamic",
            "--budget",
            "20%",
        ],
    )


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
