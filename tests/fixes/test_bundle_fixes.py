"""Fixes of bundles, and of the files of values that `dump` writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.by_layer.value_bundle import read
from tests.deployment.bundles import texts
from tests.fixes.harness import Call, Case, helps, parameters

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
RELU = HEAD + "g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }"
FIXED = HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
PICTURE = HEAD + "g (float[1,3,8,8] x) => (float[1,3] y) { p = GlobalAveragePool(x) y = Flatten(p) }"
DOUBLE = HEAD + "g (double[1,3,8,8] x) => (double[1,3,8,8] y) { y = LRN<size = 3>(x) }"
CAST = (
    HEAD
    + "g (double[1,3,8,8] x) => (double[1,3,8,8] y) { a = Cast<to = 1>(x) b = LRN<size = 3>(a) y = Cast<to = 11>(b) }"
)
TOKENS = (
    HEAD
    + """g (int64[batch,seq] input_ids) => (float[batch,3] logits) {
  f = Cast<to = 1>(input_ids) one = Constant<value_ints = [1]>() s = ReduceMean(f, one) n = Neg(s)
  logits = Concat<axis = 1>(s, n, s) }"""
)
BUNDLE = "onnxsmith bundle m.onnx -o out --for python"
M = {"m.onnx": RELU}
PACKAGE = "onnxsmith bundle m.onnx -o out --for onnxruntime-package --variant"


def changed(folder: Path) -> None:
    """Writes a bundle, and a note of its user."""
    onnxsmith.bundle(folder.parent / "m.onnx", folder, form="python")
    (folder / "notes.txt").write_text("mine")


def value(name: str) -> object:
    """A value of the tensors that the file of a dump holds."""
    save(from_text(RELU), "m.onnx")
    onnxsmith.dump("m.onnx", "v.npz")
    return read(Path("v.npz")).value(name)


CASES: list[Case | Call] = [
    Case("bundle/unknown-form", "onnxsmith bundle m.onnx -o out --for pyton", M),
    Case("bundle/unknown-form", "onnxsmith bundle m.onnx -o out", M, name="none"),
    Case("bundle/unknown-task", f"{BUNDLE} --task tensor", M),
    Case("bundle/folder", "onnxsmith bundle m.onnx --for python", M),
    Case("bundle/folder", BUNDLE, {**M, "out/mine.txt": "mine"}, name="of other files"),
    Case("bundle/folder", BUNDLE, {**M, "out": "mine"}, name="a file"),
    Case("bundle/changed", BUNDLE, {**M, "out": changed}),
    Case("bundle/changed", BUNDLE, {**M, "out": changed}, nth=1, name="replaced"),
    Case("bundle/name", f"{BUNDLE} --name 'my model'", M),
    Case("bundle/no-outputs", BUNDLE, {"m.onnx": HEAD + "g (float[batch,3] x) => () { y = Relu(x) }"}, goes_on=False),
    Case(
        "bundle/declared",
        BUNDLE,
        {"m.onnx": HEAD + "g (float[batch,3] x) => (float[batch,4] y) { y = Relu(x) }"},
        goes_on=False,
    ),
    Case(
        "bundle/variant",
        f"{PACKAGE} v.onnx",
        {**M, "v.onnx": RELU},
        by_hand=f"{PACKAGE} v.onnx@cuda",
        says=["--variant v.onnx@cuda"],
        name="without a provider",
    ),
    Case(
        "bundle/variant",
        f"{PACKAGE} v.onnx@Cuda",
        {**M, "v.onnx": RELU},
        by_hand=f"{PACKAGE} v.onnx@cuda",
        says=["--variant v.onnx@cuda"],
        name="a provider",
    ),
    Case(
        "bundle/variant",
        f"{PACKAGE} v.onnx@cpu",
        {**M, "v.onnx": RELU},
        by_hand=f"{PACKAGE} v.onnx@cpu --variant m.onnx@cuda",
        says=["--variant m.onnx@cuda"],
        name="a provider twice",
    ),
    Case("bundle/variant", f"{BUNDLE} --variant v.onnx@cuda", {**M, "v.onnx": RELU}, name="another form"),
    Case(
        "bundle/other-model",
        f"{PACKAGE} v.onnx@cuda",
        {
            **M,
            "v.onnx": HEAD
            + "g (float[batch,3] x) => (float[batch,3] y) <float s = {1.0001}> { r = Relu(x) y = Mul(r, s) }",
        },
        name="other results",
    ),
    Case(
        "bundle/other-model",
        f"{PACKAGE} v.onnx@cuda",
        {**M, "v.onnx": FIXED},
        then="onnxsmith bundle fixed_model.onnx -o out --for onnxruntime-package --variant v.onnx@cuda",
        name="fixed sizes",
    ),
    Case("bundle/licence", f"{BUNDLE} --licence LICENSE", M, changes={"LICENSE": "MIT"}, says=["--licence LICENSE"]),
    Case(
        "bundle/licence",
        f"{BUNDLE} --licence LICENSE",
        {**M, "LICENSE": ""},
        changes={"LICENSE": "MIT"},
        says=["text to LICENSE"],
        name="empty",
    ),
    Case(
        "bundle/dim-range",
        f"{BUNDLE} --dim bach=1:2:4",
        M,
        by_hand=f"{BUNDLE} --dim batch=1:2:4",
        says=["--dim batch=1:2:4 in place of bach"],
    ),
    Case(
        "bundle/dim-range",
        f"{BUNDLE} --dim batch=4:2:1",
        M,
        by_hand=f"{BUNDLE} --dim batch=1:2:4",
        says=["--dim batch=1:2:4"],
        name="upside down",
    ),
    Case(
        "bundle/dim-range",
        f"{BUNDLE} --dim n=1:2:4",
        {"m.onnx": HEAD + "g (float[?,3] x) => (float[?,3] y) { y = Relu(x) }"},
        goes_on=False,
        name="nameless",
    ),
    Case(
        "bundle/dim-range",
        f"{BUNDLE} --dim batch=4:5:8 --input x.npz",
        {**M, "x.npz": {"x": np.ones((3, 3), np.float32)}},
        name="an input outside",
    ),
    Case(
        "bundle/dim-range",
        f"{BUNDLE} --dim n=8..256",
        {"m.onnx": HEAD + "g (float[n] x) => (float[m,8] y) <int64[2] s = {-1, 8}> { y = Reshape(x, s) }"},
        says=["--dim n=8:48:256"],
        name="a usual size between",
    ),
    Case(
        "bundle/random",
        BUNDLE,
        {"m.onnx": HEAD + "g (float[2,3] x) => (float[2,3] y) { r = RandomNormalLike(x) y = Add(x, r) }"},
        changes={"m.onnx": HEAD + "g (float[2,3] x, float[2,3] r) => (float[2,3] y) { y = Add(x, r) }"},
        says=["make the drawn tensor an input of the model"],
    ),
    Case(
        "bundle/task-mismatch",
        f"{BUNDLE} --task image-classification --mean 0,5",
        {"m.onnx": PICTURE},
        by_hand=f"{BUNDLE} --task image-classification --mean 0.5,0.5,0.5",
        says=["the 3 numbers", "--mean 0.5,0.5,0.5"],
        name="one for each channel",
    ),
    Case(
        "bundle/settings",
        f"{BUNDLE} --task image-classification --mean grey",
        {"m.onnx": PICTURE},
        by_hand=f"{BUNDLE} --task image-classification --mean 0.5,0.4,0.3",
        says=["one for each channel", "0.485,0.456,0.406"],
        name="no numbers",
    ),
    Case("bundle/settings", f"{BUNDLE} --mean 0.5,0.5,0.5", {"m.onnx": PICTURE}, name="without a task"),
    Case(
        "bundle/settings",
        f"{BUNDLE} --task image-classification --settings s.toml",
        {"m.onnx": PICTURE, "s.toml": "means = [0.5, 0.5, 0.5]"},
        changes={"s.toml": "mean = [0.5, 0.5, 0.5]"},
        says=["write mean in place of means"],
        name="a name",
    ),
    Case(
        "bundle/task-mismatch",
        f"{BUNDLE} --task image-classification",
        {"m.onnx": HEAD + "g (float[4,3,8,8] x) => (float[4,3] y) { p = GlobalAveragePool(x) y = Flatten(p) }"},
        goes_on=False,
    ),
    Case(
        "bundle/task-mismatch",
        f"{BUNDLE} --task image-classification",
        M,
        by_hand=BUNDLE,
        says=["leave --task out"],
        name="no picture",
    ),
    Case(
        "bundle/too-large",
        f"{BUNDLE} --dim n=1:8:9",
        {"m.onnx": HEAD + "g (float[n,10000000] x) => (float y) { y = ReduceMax<keepdims = 0>(x) }"},
    ),
    Case(
        "bundle/not-for-form",
        "onnxsmith bundle m.onnx -o out --for web",
        {"m.onnx": HEAD + "g (seq(float[3]) x) => (int64 y) { y = SequenceLength(x) }"},
    ),
    Case(
        "bundle/not-for-form",
        "onnxsmith bundle m.onnx -o out --for tensorrt",
        {"m.onnx": HEAD + "g (float[batch,3] a) => (float[batch,3] y) { y = Relu(a) }".replace("a)", '"a,b")')},
        goes_on=False,
        name="a name",
    ),
    Case(
        "bundle/not-for-form",
        f"{BUNDLE.replace('python', 'transformers-js')}",
        M,
        by_hand="onnxsmith bundle m.onnx -o out --for web",
        says=["--for web"],
        name="no task",
    ),
    Case(
        "bundle/no-client",
        "onnxsmith bundle m.onnx -o out --for web --node-modules node_module",
        M,
        by_hand="onnxsmith bundle m.onnx -o out --for web",
        says=["leave --node-modules out"],
    ),
    Case(
        "bundle/no-tokenizer",
        f"{BUNDLE} --task text-classification",
        {"m.onnx": TOKENS, "bert": texts.classifier},
        fill={"FOLDER": "bert"},
    ),
    Case(
        "bundle/different",
        f"{BUNDLE} --tolerance 1e-12 --runtime reference",
        {"m.onnx": HEAD + "g (float[batch,64] x) => (float[batch,64] y) { a = Softmax(x) b = Exp(a) y = Tanh(b) }"},
    ),
    Case(
        "bundle/client-failed",
        f"{BUNDLE} --runtime reference",
        {"m.onnx": DOUBLE},
        changes={"m.onnx": CAST},
        by_hand=BUNDLE,
        says=["put a Cast before it and a Cast back after it"],
    ),
    Case("bundle/suffix", "onnxsmith dump m.onnx -o v.txt", M),
    Case("bundle/suffix", "onnxsmith inspect m.onnx --weights w.bin", M, goes_on=False, name="weights"),
    Case(
        "bundle/unreadable",
        "onnxsmith compare m.onnx v.safetensors",
        {"m.onnx": FIXED, "v.safetensors": "{}"},
        fill={"MODEL": "m.onnx"},
    ),
    Call("bundle/unknown-name", lambda: value("z"), lambda: value("y"), ["y"]),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
