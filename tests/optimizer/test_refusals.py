"""What rules and passes refuse, and what they keep."""

from __future__ import annotations

import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 8, opset_import: ["": 17]>'

REFUSED = {
    "an input that is an output": (
        "algebra/identity", "needs a value of its own",
        "g (float[N] x) => (float[N] y) { y = Identity(x) }",
    ),
    "one value as two outputs": (
        "algebra/identity", "needs a value of its own",
        "g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x)\n z = Identity(y) }",
    ),
    "a captured value as a branch's output": (
        "algebra/identity", "needs a value of its own",
        """g (float[N] x, bool c) => (float[N] y) {
            y = If(c) <then_branch = t () => (float[N] a) { a = Identity(x) },
                       else_branch = e () => (float[N] b) { b = Neg(x) }>
        }""",
    ),
    "Dropout in training": (
        "algebra/dropout-inference", "training",
        "g (float[N] x) => (float[N] y) <float r = {0.5}, bool t = {1}> { a = Dropout(x, r, t)\n y = Neg(a) }",
    ),
    "Dropout that may train": (
        "algebra/dropout-inference", "training",
        "g (float[N] x, bool t) => (float[N] y) <float r = {0.5}> { a = Dropout(x, r, t)\n y = Neg(a) }",
    ),
    "Dropout whose mask is read": (
        "algebra/dropout-inference", "mask",
        "g (float[N] x) => (float[N] y, bool[N] m) { a, m = Dropout(x)\n y = Neg(a) }",
    ),
    "a convolution that others read": (
        "fuse/conv-batchnorm", "used elsewhere",
        """g (float[N,1,4,4] x) => (float[N,1,4,4] y, float[N,1,4,4] z)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v)\n z = Neg(a)
        }""",
    ),
    "a convolution that is an output": (
        "fuse/conv-batchnorm", "used elsewhere",
        """g (float[N,1,4,4] x) => (float[N,1,4,4] y, float[N,1,4,4] a)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v)
        }""",
    ),
    "weights that a caller may replace": (
        "fuse/conv-batchnorm", "weight is not a constant",
        """g (float[N,1,4,4] x, float[1,1,1,1] w) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v)
        }""",
    ),
    "weights that another convolution shares": (
        "fuse/conv-batchnorm", "the weights are also used elsewhere",
        """g (float[N,1,4,4] x) => (float[N,1,4,4] y, float[N,1,4,4] z)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v)\n n = Neg(x)\n z = Conv(n, w)
        }""",
    ),
    "normalisation in training": (
        "fuse/conv-batchnorm", "training",
        """g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
            a = Conv(x, w)\n y, m2, v2 = BatchNormalization<training_mode = 1>(a, s, b, m, v)
        }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    rule, reason, text = REFUSED[case]
    model = from_text(f"{HEAD}\n{text}")
    result, part = simplified(model)
    assert not [entry for entry in part.fired if entry.rule == rule]
    assert any(entry.rule == rule and reason in entry.why_not for entry in part.refused)
    if "train" not in case:
        assert verify_models(model, result, Verify(runtime="reference")).equal


KEPT = {
    "an unused input": "g (float[N] x, float[N] unused) => (float[N] y) { y = Neg(x) }",
    "a default that a caller may replace": (
        "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Neg(x) }"
    ),
    "an output position": "g (float[4] x) => (float[2] b) { a, b = Split<axis = 0, num_outputs = 2>(x) }",
    "a node that only a branch reads": """g (float[N] x, bool c) => (float[N] y) {
        a = Neg(x)
        y = If(c) <then_branch = t () => (float[N] p) { p = Abs(a) }, else_branch = e () => (float[N] q) { q = Exp(a) }>
    }""",
    "an initializer that only a branch reads": """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, w) },
               else_branch = e () => (float[2] q) { q = Sub(x, w) }>
    }""",
    "a constant that is an output": (
        "g (float[N] x) => (float[N] y, float z) { z = Constant<value_float = 2.0>()\n y = Neg(x) }"
    ),
    "a sum with negative zero": "g (float[N] x) => (float[N] y) <float zero = {0}> { y = Add(x, zero) }",
}


@pytest.mark.parametrize("case", KEPT)
def test_kept(case: str) -> None:
    model = from_text(f"{HEAD.replace('17', '18')}\n{KEPT[case]}")
    result, _ = simplified(model)
    assert [value.name for value in result.graph.inputs] == [value.name for value in model.graph.inputs]
    assert [value.name for value in result.graph.outputs] == [value.name for value in model.graph.outputs]
    assert set(result.graph.initializers) >= {v.name for v in model.graph.inputs if v.name in model.graph.initializers}
    assert verify_models(model, result, Verify(runtime="reference")).equal


def test_what_nothing_reads_is_gone() -> None:
    model = from_text(
        f"{HEAD}\ng (float[N] x) => (float[N] y) <float[2] w = {{1, 2}}> {{ a = Exp(x)\n b = Neg(a)\n y = Abs(x) }}"
    )
    result, part = simplified(model)
    assert [node.op_type for node in result.graph] == ["Abs"]
    assert not result.graph.initializers
    assert (part.nodes_before, part.nodes_after) == (3, 1)


def test_functions_are_simplified_without_initializers_of_their_own() -> None:
    model = from_text(
        """
        <ir_version: 10, opset_import: ["": 20, "f": 1]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) { y = f.block(x) }
        <domain: "f", opset_import: ["": 20]>
        block (x) => (y) {
            w = Constant<value = float[1,1,1,1] {2}>()
            s = Constant<value = float[1] {3}>()
            b = Constant<value = float[1] {1}>()
            m = Constant<value = float[1] {0.5}>()
            v = Constant<value = float[1] {0.9}>()
            a = Conv(x, w)
            n = BatchNormalization(a, s, b, m, v)
            y = Identity(n)
        }
        """
    )
    result, part = simplified(model)
    assert {entry.rule for entry in part.fired} >= {"fuse/conv-batchnorm", "algebra/identity"}
    assert verify_models(model, result, Verify(runtime="onnxruntime")).equal


def test_long_chains_and_wide_fans_are_linear_and_do_not_recurse() -> None:
    chain = "\n".join(f"v{i + 1} = Identity(v{i})" for i in range(5000))
    fan = "\n".join(f"f{i} = Neg(v5000)\n g{i} = Identity(f{i})" for i in range(2000))
    last = ", ".join(f"g{i}" for i in range(2000))
    model = from_text(f"{HEAD}\ng (float[N] v0) => (float[M] y) {{ {chain}\n {fan}\n y = Concat<axis = 0>({last}) }}")
    result, _ = simplified(model)
    assert sorted(node.op_type for node in result.graph) == ["Concat", "Neg"]
    result, _ = simplified(model, skip=["share/nodes"])
    assert len(result.graph) <= 2001


def test_what_only_a_dead_branch_reads_is_gone() -> None:
    model = from_text(
        f"""{HEAD}
        g (float[N] x, bool c) => (float[N] y) <float w = {{2}}> {{
            a = Mul(x, w)
            dead = If(c) <then_branch = t () => (float[M] p) {{ p = Neg(a) }},
                          else_branch = e () => (float[M] q) {{ q = Abs(a) }}>
            y = Exp(x)
        }}"""
    )
    result, _ = simplified(model)
    assert [node.op_type for node in result.graph] == ["Exp"]
    assert not result.graph.initializers
