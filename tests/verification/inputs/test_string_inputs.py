"""Strings are those that the graph looks up."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.string_inputs import Texts, texts
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 4, "com.microsoft": 1]>\n'
COUNTED = """TfIdfVectorizer<max_gram_length = 2, max_skip_count = 0, min_gram_length = 1, mode = "TF",
    ngram_counts = [0, 3], ngram_indexes = [0, 1, 2, 3], pool_strings = ["cat", "dog", "the", "the", "dog"]>"""
WORDS = 'com.microsoft.Tokenizer<mark = 0, mincharnum = 1, pad_value = "#", tokenexp = "[a-z]+">'
PARTS = 'com.microsoft.Tokenizer<mark = 0, mincharnum = 1, pad_value = "#", separators = ["|"]>'


def read(nodes: str, x: str = "string[n] x", weights: str = "") -> ir.Model:
    return from_text(HEAD + f"g ({x}) => (float[n,m] y) {weights} {{ {nodes} }}")


def of(nodes: str, x: str = "string[n] x", weights: str = "") -> Texts:
    return texts(read(nodes, x, weights).graph.inputs[0])


def drawn(found: Texts, *shape: int) -> np.ndarray:
    return found.drawn(np.random.default_rng(0), shape)


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ('y = ai.onnx.ml.LabelEncoder<keys_strings = ["cat", "dog", "cat"], values_int64s = [0, 1, 2]>(x)', ""),
        ('y = ai.onnx.ml.LabelEncoder<keys_tensor = string[2] {"cat", "dog"}, values_int64s = [0, 1]>(x)', ""),
        ('y = ai.onnx.ml.CategoryMapper<cats_int64s = [1, 2], cats_strings = ["cat", "dog"]>(x)', ""),
        ("y = Equal(x, k)", '<string[2] k = {"cat", "dog"}>'),
        ('s = StringNormalizer<stopwords = ["cat", "dog"]>(x)\n y = Identity(s)', ""),
    ],
)
def test_known_strings_are_found(nodes: str, weights: str) -> None:
    found = of(nodes, weights=weights)
    others = "StringNormalizer" not in nodes  # which a lookup has an answer for, too
    assert found == Texts((("cat",), ("dog",)), strange=others)
    assert set(drawn(found, 8, 4).ravel()) == {"cat", "dog", *(["onnx"] if others else [])}


def test_other_strings_are_ordinary_ones() -> None:
    assert "Straße" in drawn(texts(ir.Value(name="x")), 64)


def test_words_stand_together_as_they_are_counted() -> None:
    found = of(f"y = {COUNTED}(x)", "string[n,8] x")
    assert ("the", "dog") in found.grams
    assert any("the dog" in " ".join(row) for row in drawn(found, 4, 8))


@pytest.mark.parametrize(
    ("nodes", "joint"),
    [
        (f"t = {WORDS}(x)\n f = Flatten(t)\n y = {COUNTED}(f)", " "),
        (f"t = {PARTS}(x)\n y = {COUNTED}(t)", "|"),
        (f"t, c = StringSplit(x)\n y = {COUNTED}(t)", " "),
        (f't, c = StringSplit<delimiter = ",">(x)\n y = {COUNTED}(t)', ","),
    ],
)
def test_what_is_taken_apart_is_a_text_of_several_words(nodes: str, joint: str) -> None:
    found = of(nodes)
    assert found.joint == joint
    assert any(f"the{joint}dog" in text for text in drawn(found, 16))


def test_the_other_case_is_given_where_case_is_changed() -> None:
    found = of(f's = StringNormalizer<case_change_action = "LOWER">(x)\n y = {COUNTED}(s)')
    assert {("cat",), ("CAT",), ("THE", "DOG")} <= set(found.grams)


def test_a_fault_in_one_words_weight_is_seen() -> None:
    text = HEAD + (
        f"g (string[n] x) => (float[n,4] y) <float[4] w = {{1, 2, 3, WEIGHT}}> {{"
        f" t = {WORDS}(x)\n c = {COUNTED}(t)\n y = Mul(c, w) }}"
    )
    right = from_text(text.replace("WEIGHT", "4"))
    found = verify_models(right, from_text(text.replace("WEIGHT", "4")))
    assert found.equal
    assert not found.unsure
    assert not verify_models(right, from_text(text.replace("WEIGHT", "4.1"))).equal
