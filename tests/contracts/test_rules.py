"""Every rule: its docstring is its page and its first test."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

import onnx_ir as ir
import pytest

from onnxsmith.base import rooms
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of
from onnxsmith.graph.patterns.search_plan import Plan
from onnxsmith.optimizer.rules._pattern_rule import PatternRule
from onnxsmith.optimizer.rules.base import Exactness, Rule
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
from tests.graphs import assert_same_graph

RULES = rooms.members("onnxsmith.optimizer.rules", Rule)


def snippet(rule: Rule, label: str) -> str:
    doc = inspect.getdoc(type(rule)) or ""
    match = re.search(rf"^{label}:\n((?:    .*\n|\n)+)", doc + "\n", re.MULTILINE)
    assert match, f"no {label}: in the docstring"
    return textwrap.dedent(match[1])


@pytest.mark.parametrize("rule_id", RULES)
def test_before_becomes_after(rule_id: str) -> None:
    before, after = (from_text(snippet(RULES[rule_id], label)) for label in ("Before", "After"))
    result, part = simplified(before, only=[rule_id])
    assert [entry for entry in part.fired if entry.rule == rule_id]
    assert_same_graph(result, after)


@pytest.mark.parametrize("rule_id", RULES)
def test_before_and_after_compute_the_same(rule_id: str) -> None:
    before, after = (from_text(snippet(RULES[rule_id], label)) for label in ("Before", "After"))
    runtime = "onnxruntime" if RULES[rule_id].domain else "reference"  # no other runtime has its operators
    assert verify_models(before, after, Verify(runtime=runtime)).equal


@pytest.mark.parametrize("rule_id", RULES)
def test_after_is_left_alone(rule_id: str) -> None:
    after = from_text(snippet(RULES[rule_id], "After"))
    _, part = simplified(after, only=[rule_id])
    assert not [entry for entry in part.fired if entry.rule == rule_id]


def source(rule: Rule) -> str:
    """The source of a rule, and of all in its file that it uses."""
    text = inspect.getsource(inspect.getmodule(type(rule)))
    parts = {getattr(node, "name", ""): node for node in ast.parse(text).body}
    queue = [type(rule).__name__]
    for name in queue:  # grows while it is read
        used = {node.id for node in ast.walk(parts[name]) if isinstance(node, ast.Name)}
        queue += [other for other in parts if other in used and other not in queue]
    return "\n".join(ast.get_source_segment(text, parts[name]) or "" for name in queue)


@pytest.mark.parametrize("rule_id", RULES)
def test_the_page_says_what_is_refused(rule_id: str) -> None:
    """By number; the page of a rule that never refuses what is its pattern has no such list."""
    doc = inspect.getdoc(type(RULES[rule_id])) or ""
    refuses = re.search(r"NoMatch\(|too_old\(|read_elsewhere\(|sole_reader = True", source(RULES[rule_id]))
    assert re.search(r"^Refused:\n1\. ", doc, re.MULTILINE) or not refuses
    assert isinstance(RULES[rule_id].exactness, Exactness)
    assert RULES[rule_id].anchor


@pytest.mark.parametrize("rule_id", [id_ for id_, rule in RULES.items() if isinstance(rule, PatternRule)])
def test_a_rule_starts_where_its_pattern_ends(rule_id: str) -> None:
    rule = RULES[rule_id]
    assert isinstance(rule, PatternRule)
    anchors = Plan(pattern_of(rule.pattern)).anchor_types
    assert anchors == {("", op_type) for op_type in rule.anchor}
    assert len(replacement_of(rule.replacement).outputs) == 1


def test_no_rule_changes_the_model_it_is_given() -> None:
    for rule_id, rule in RULES.items():
        before = from_text(snippet(rule, "Before"))
        text = ir.to_onnx_text(before)
        simplified(before, only=[rule_id])
        assert ir.to_onnx_text(before) == text
