"""Fixes of problems of comparing folders of graphs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.comparison.outputs.test_folders import LATER_PARTS, TOKENIZER, words
from tests.comparison.outputs.toy_decoders import CONFIG, DECODER
from tests.fixes.harness import Call, Case, helps, parameters

GOOD = {"a/model.onnx": DECODER, "a/config.json": json.dumps(CONFIG)}
BOTH = {**GOOD, "b/model.onnx": DECODER, "b/config.json": json.dumps(CONFIG)}
TWO = {f"two/{name}": text for name, text in LATER_PARTS.items()}
FIRST, LATER = LATER_PARTS
CASES: list[Case | Call] = [
    Case("compare/folder-layout", "onnxsmith compare a b", {**GOOD, "b/c/d/model.onnx": DECODER}, goes_on=False),
    Case(
        "compare/folder-part",
        "onnxsmith compare a two",
        {**GOOD, f"two/{FIRST}": TWO[f"two/{FIRST}"]},
        changes={f"two/{LATER}": DECODER},
        says=[f"copy {LATER} into two"],
    ),
    Case(
        "compare/folder-config",
        "onnxsmith compare a b",
        {**BOTH, "b/config.json": '{"vocab_size": '},
        changes={"b/config.json": json.dumps(CONFIG)},
        says=["take config.json from the original"],
    ),
    Case(
        "compare/folder-original",
        "onnxsmith compare a/model.onnx two",
        {**GOOD, **TWO},
        by_hand="onnxsmith compare a two",
        says=["give the folder of the original as REFERENCE"],
    ),
    Case(
        "compare/folder-option",
        "onnxsmith compare a b --per-layer",
        BOTH,
        by_hand="onnxsmith compare a b",
        says=["leave --per-layer out"],
    ),
    Case(
        "compare/folder-files",
        "onnxsmith compare a b",
        {**BOTH, "a/tokenizer.json": TOKENIZER, "b/tokenizer.json": words("[UNK]", "quick", "the")},
    ),
]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_fix_helps(case: Case | Call, tmp_path: Path) -> None:
    helps(case, tmp_path)
