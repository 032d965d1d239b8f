"""`assert_same` and `assert_exports`: what they pass, what they refuse, and what a failure says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.same import same
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.testing import assert_not_worse, assert_same
from onnxsmith.testing.assertions import assert_exports
from onnxsmith.testing.failure import raise_unless_done

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x) => (float[n,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }"""
W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
INPUTS = [np.random.default_rng(n).normal(size=(2, 3)).astype(np.float32) for n in range(3)]


def right(x: Any) -> Any:
    return x @ W


def off(x: Any) -> Any:
    return x @ np.where(W == 4, W * 1.01, W)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(MODEL), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_file_and_a_function(file: Path) -> None:
    assert_same(right, file, INPUTS)
    assert_same(file, right, INPUTS)
    with pytest.raises(AssertionError, match="gate/answers-differ"):
        assert_same(off, file, INPUTS)


def test_arguments_by_position_and_by_name(file: Path) -> None:
    def two(x: Any, scale: float = 1.0) -> Any:
        return x * scale

    for given in ((INPUTS[0], 2.0), {"x": INPUTS[0], "scale": 2.0}):
        assert same(two, lambda x, scale: x + x, inputs=[given]).verdict is Verdict.DONE
    assert same(lambda d: d["x"], lambda d: d["x"], inputs=[{"x": 1.5}]).verdict is Verdict.DONE
    assert_same(lambda x: x @ W, file, [{"x": INPUTS[0]}])


def test_what_is_no_list_is_one_input() -> None:
    assert "the same answers to 1 input" in same(right, right, inputs=INPUTS[0]).headline
    assert "1 input" in same(str.upper, lambda text: text.upper(), inputs="abc").headline
    assert "1 input" in same(lambda n: n * 1.5, lambda n: 1.5 * n, inputs=3).headline
    assert "3 inputs" in same(right, right, inputs=iter(INPUTS)).headline


def test_a_mapping_is_named_arguments_or_names_of_inputs() -> None:
    def two(x: Any, scale: float = 1.0) -> Any:
        return x * scale

    assert "to 1 input" in same(two, lambda x, scale: x * scale, inputs={"x": INPUTS[0], "scale": 2.0}).headline
    assert "to 2 inputs" in same(two, two, inputs={"x": INPUTS[0], "y": INPUTS[1]}).headline
    assert "to 2 inputs" in same(two, lambda x, **more: two(x, **more), inputs={"a": 1.0, "b": 2.0}).headline


CONSTANT = {
    "zeros": (lambda x: np.zeros(3), INPUTS),
    "ones": (lambda x: {"a": np.ones(3), "b": "text"}, INPUTS),
    "a label": (lambda x: "day", INPUTS),
    "one input": (lambda x: np.ones(3), INPUTS[:1]),
    "one input by name": (lambda x: np.ones(3), {"x": INPUTS[0]}),
    "one path": (lambda path: np.zeros(3), "photo.png"),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_answers_that_do_not_depend_on_inputs_are_no_pass(name: str) -> None:
    function, inputs = CONSTANT[name]
    report = same(function, function, inputs=inputs)
    assert (report.verdict, report.problems[0].id) == (Verdict.CANNOT_TELL, "gate/constant-answers")
    with pytest.raises(AssertionError, match="gate/constant-answers"):
        assert_same(function, function, inputs)


BUFFER = np.zeros(3)
DEPENDING = {
    "a sum": (lambda x: x.sum(), np.ones((2, 2), np.float32)),
    "an order": (lambda x: x / np.abs(x).max(), np.array([1.0, 2.0])),
    "integers": (lambda ids: ids * 0.5, np.array([1, 2])),
    "a function that refuses other values": (lambda x: {1.0: np.ones(2)}[float(x[0])], np.ones(1)),
    "a buffer that is used again": (lambda x: np.copyto(BUFFER, x[0]) or BUFFER, INPUTS),
    "a label": (lambda x: "day", INPUTS[:1]),
}


@pytest.mark.parametrize("name", DEPENDING)
def test_answers_that_depend_on_inputs_pass(name: str) -> None:
    function, inputs = DEPENDING[name]
    report = same(function, function, inputs=inputs)
    assert report.verdict is Verdict.DONE
    assert bool(report.notes) == (name == "a label")


def test_inputs_with_names_are_named() -> None:
    report = same(right, off, inputs={"the first": INPUTS[0]})
    assert "the first" in report.problems[0].where


def test_an_input_that_a_side_changes_stays_as_it_was_for_the_other() -> None:
    def careless(x: Any) -> Any:
        x *= 2
        return x

    assert_same(lambda x: x * 2, careless, INPUTS)
    assert_same(careless, lambda x: x * 2, INPUTS)


def test_a_function_that_raises_is_named() -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no such class")

    report = same(right, broken, inputs=INPUTS)
    assert report.verdict is Verdict.DIFFERENT
    assert report.problems[0].id == "gate/raised"
    assert "no such class" in report.problems[0].what
    assert Path(__file__).name in report.problems[0].where


def test_what_cannot_fail_is_no_pass() -> None:
    report = same(lambda x: [], lambda x: [], inputs=INPUTS)
    assert (report.verdict, report.problems[0].id) == (Verdict.CANNOT_TELL, "gate/empty-answers")
    with pytest.raises(AssertionError, match="gate/empty-answers"):
        raise_unless_done(report)


def test_a_function_that_is_not_steady() -> None:
    rng = np.random.default_rng()
    report = same(lambda x: rng.normal(size=3), lambda x: np.zeros(3), inputs=INPUTS)
    assert {one.id for one in report.problems} == {"gate/unsteady"}
    assert report.verdict is Verdict.CANNOT_TELL
    with pytest.raises(AssertionError):
        raise_unless_done(report)


@pytest.mark.parametrize(("inputs", "options", "id_"), [([], {}, "no-inputs"), (INPUTS, {"sizes": {"n": 3}}, "option")])
def test_what_predict_functions_need(inputs: Any, options: Any, id_: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        same(right, off, inputs=inputs, **options)
    assert caught.value.problem.id == f"gate/{id_}"


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "id_"), [("tolerance", "verify/tolerance"), ("overlap", "input/syntax")])
def test_a_limit_with_which_nothing_is_found_is_refused(name: str, id_: str, limit: float) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        same(right, off, inputs=INPUTS, **{name: limit})
    assert caught.value.problem.id == id_


class Unequal:
    """An object whose comparison raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None


def test_no_error_leaves_an_assertion_as_it_is(file: Path) -> None:
    for make in (Unequal, object):
        with pytest.raises(AssertionError, match=r"(?s)CANNOT TELL.*gate/no-measure.*cannot be compared"):
            assert_same(lambda x, make=make: [make(), x], lambda x, make=make: [make(), x], [1, 2])
    for sides in ((file, file), (right, file)):
        with pytest.raises(AssertionError, match=r"gate/option: .*'sises'"):
            assert_same(*sides, INPUTS, sises={"n": 3})
    with pytest.raises(AssertionError, match=r"gate/option: .*'sises'"):
        assert_not_worse(file, "baseline.json", sises=3)
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(AssertionError, match="internal/unexpected"):
        assert_same(lambda x: cycle, lambda x: cycle, [1, 2])


def test_two_files_are_compared_as_models(file: Path, tmp_path: Path) -> None:
    save(from_text(MODEL.replace("4,5", "4.04,5")), tmp_path / "off.onnx")
    assert_same(file, file)
    with pytest.raises(AssertionError, match="verify/different") as caught:
        assert_same(file, tmp_path / "off.onnx")
    assert "first error" in str(caught.value)


def test_a_failure_fits_on_a_screen() -> None:
    answers = {str(n): "a" for n in range(100)}
    with pytest.raises(AssertionError) as caught:
        assert_same(lambda x: answers, lambda x: dict.fromkeys(answers, "b"), [1, 2])
    lines = str(caught.value).splitlines()
    assert len(lines) < 20
    assert "more" in lines[-1]


@pytest.mark.torch
def test_a_failure_leads_to_the_stage_and_the_step(file: Path) -> None:
    """The pre-processing differs in its second step: the whole fails, then the stage, then the step."""

    def prepare(pixels: Any, scale: float = 255.0) -> Any:
        flat = pixels.reshape(-1, 3)
        return {"flat": flat, "scaled": flat / np.float32(scale)}

    def other(pixels: Any) -> Any:
        return prepare(pixels, 256.0)

    picture = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.float32)
    whole = same(
        lambda pixels: right(prepare(pixels)["scaled"]), lambda pixels: right(other(pixels)["scaled"]), inputs=[picture]
    )
    (found,) = whole.problems
    assert "compare the stages one by one" in found.fix
    assert "return a mapping with the values after each step" in found.fix
    assert_same(right, file, [prepare(picture)["scaled"]])
    with pytest.raises(AssertionError, match="compare the stages") as failure:
        assert_same(lambda pixels: prepare(pixels)["scaled"], lambda pixels: other(pixels)["scaled"], [picture])
    assert "if this is already a single stage" in str(failure.value)
    (found,) = same(prepare, other, inputs=[picture]).problems
    assert found.where.startswith("input 1, ['scaled']")


@pytest.mark.parametrize(
    ("ours", "theirs", "first"),
    [
        (lambda x: [x, x], lambda x: [x], "look at the last step first"),
        (lambda x: x, lambda x: x.T, "look at the sizes"),
        (lambda x: {"a": x}, lambda x: {"b": x}, "let both return the same keys first"),
        (lambda x: str(x), lambda x: "none", "compare first the tokens of the text"),
        (lambda x: x, lambda x: x + 1, "compare the stages"),
        (lambda x: "a", lambda x: 1, "compare the stages"),
    ],
)
def test_the_first_fix_is_of_the_kind(ours: Any, theirs: Any, first: str) -> None:
    (found,) = same(ours, theirs, inputs=INPUTS).problems
    assert found.fix.startswith(first)
    assert "compare the stages one by one" in found.fix


def test_a_module(file: Path) -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())
    assert assert_exports(module, (torch.rand(2, 3),), dynamic="input:0=n", target="onnxruntime") is None
    path = assert_exports(module, (torch.rand(2, 3),), output=file.with_name("e.onnx"))
    assert_same(module, path, [torch.rand(2, 3)])
    assert_same(module, lambda x: module.eval()(x), [torch.rand(2, 3)])
    assert not module.training or module.train()
    with pytest.raises(AssertionError, match="verify/"):
        assert_same(module, file, [torch.rand(2, 3)])
    example = (torch.rand(2, 3, 9, 9),)
    parts = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)
    whole = torch.nn.Sequential(*parts).eval()
    fused = torch.nn.utils.fusion.fuse_conv_bn_eval(*parts)
    assert_same((whole, example), (fused, example))
    with torch.no_grad():
        fused.weight[0] *= 1.01
    with pytest.raises(AssertionError, match="verify/different"):
        assert_same((whole, example), (fused, example))
    with pytest.raises(AssertionError, match="gate/no-inputs"):
        assert_same(module, file)
    assert_same(module, path, torch.rand(2, 3))
    assert_same(module, path, {"input": torch.rand(2, 3)})
    assert_same(module, lambda x: module.eval()(x), torch.rand(2, 3))


@pytest.mark.torch
def test_a_module_that_does_not_export() -> None:
    import torch

    class Refused(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise RuntimeError("not today")

    with pytest.raises(AssertionError, match="not today"):
        assert_exports(Refused(), (torch.rand(2, 3),))
