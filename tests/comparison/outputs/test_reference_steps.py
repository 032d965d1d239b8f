"""`compare --steps`: both models are called several times in a row, each time with the state that they returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import onnxsmith
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.verification import Steps, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.compare import Compare
from onnxsmith.comparison.outputs.state_names import Fed, by_name
from onnxsmith.exporter.inputs.state_pairs import Carried, stored
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature, signature
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
ADDING = HEAD + "g (float[b,3] x, float[b,3] {0}) => (float[b,3] y, float[b,3] {1}) "
PLAIN = ADDING + "{{ s = Add(x, {0})\n {1} = Identity(s)\n y = Tanh(s) }}"
CUT = ADDING + "<float top = {{2.5}}> {{ s = Add(x, {0})\n c = Min(s, top)\n {1} = Identity(c)\n y = Tanh(c) }}"
GROWING = (
    HEAD + "g (float[b,n,2] x, int64[b,total] mask, float[b,past,2] past_0) => (float[b,n,2] y, float[b,total,2] "
    "present_0) <int64[1] one = {{1}}, int64[1] last = {{2}}> {{ present_0 = Concat<axis = 1>(past_0, x)\n "
    "f = Cast<to = 1>(mask)\n u = Unsqueeze(f, last)\n m = Mul(present_0, u)\n r = ReduceMean(m, one)\n {} }}"
)


def file(path: Path, text: str, **metadata: Any) -> str:
    model = from_text(text)
    model.metadata_props.update({key: json.dumps(value) for key, value in metadata.items()})
    save(model, path)
    return str(path)


def pair(folder: Path, before: str = "state", after: str = "stateN") -> tuple[str, str]:
    names = before, after
    return file(folder / "m.onnx", PLAIN.format(*names)), file(folder / "cut.onnx", CUT.format(*names))


def ones(count: int = 4) -> list[dict[str, Any]]:
    return [{"x": np.ones((1, 3), np.float32)} for _ in range(count)]


def compared(*sides: Any, **options: Any) -> Report:
    return onnxsmith.compare(*sides, generate=options.pop("generate", False), **options).report


def test_the_first_step_that_differs_and_its_layer(tmp_path: Path) -> None:
    report = compared(*pair(tmp_path), steps=4, inputs=ones(), per_layer=True)
    part = report.part(Steps)
    assert [bool(step.reason) for step in part.steps] == [False, False, True, True]
    assert part.first == "step 3 of 4"
    assert [(one.input, one.output, one.first) for one in part.state] == [("state", "stateN", "zeros float32[1,3]")]
    layers = report.part(Layers)
    assert layers.input == "step 3 of 4"
    assert layers.culprits
    assert report.verdict is Verdict.DIFFERENT
    assert "; first at step 3 of 4; first error: " in report.headline


def test_equal_models_agree_in_every_step(tmp_path: Path) -> None:
    model, _ = pair(tmp_path)
    report = compared(model, model, steps=40, inputs=ones(1))
    part = report.part(Steps)
    assert report.verdict is Verdict.DONE
    assert (len(part.steps), part.first, part.drifts) == (40, "", False)
    assert part.drift == "with its own state, the candidate returns bit-identical outputs"
    assert len(report.part(Verification).runs) == 40


def test_the_state_is_the_reference_s(tmp_path: Path) -> None:
    """From the reference's state the candidate is half of it in each step, from its own it stays further behind."""
    model, _ = pair(tmp_path)
    half = PLAIN.replace("{1} = Identity(s)", "h = Constant<value_float = 0.5>()\n {1} = Mul(s, h)")
    other = file(tmp_path / "half.onnx", half.format("state", "stateN"))
    last = compared(model, other, steps=5, inputs=ones()).part(Steps).steps[4]
    assert (last.output, last.difference) == ("stateN", 0.25)
    assert last.own == pytest.approx((1 - (1 - 0.5**5) / 5) / 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [("h", "hn"), ("h0", "hn"), ("h_0", "h_1"), ("prev_state", "state"), ("cache_in", "cache_out"),
     ("past_0", "present_0"),
     ("cached_key_3", "new_cached_key_3"), ("hidden", "hidden_out"), ("state", "stateN"), ("c", "cn"),
     ("past_key_values.0.key", "present.0.key"), ("past_key_values.0.decoder.key", "present.0.decoder.key"),
     ("past_conv.1", "present_conv.1"), ("decoder_h", "decoder_hn")],
)  # fmt: skip
def test_names_that_do_not_map_one_to_one(before: str, after: str) -> None:
    inputs, outputs = (tuple(Port(name, "float", None) for name in ("x", one)) for one in (before, after))
    assert list(by_name(Signature(inputs, outputs[::-1]))) == [Fed(before, after)]


@pytest.mark.parametrize(
    ("before", "after"),
    [("input_image", "output_image"), ("key", "value"), ("past_0", "present_1"), ("x0", "x1"), ("input", "output"),
     ("past_key_values.0.key", "present.0.value"), ("past_key_values.0.encoder.key", "present.0.decoder.key")],
)  # fmt: skip
def test_names_that_are_no_pair(before: str, after: str) -> None:
    assert list(by_name(Signature((Port(before, "float", None),), (Port(after, "float", None),)))) == []


def test_dtype_and_shape_have_to_fit() -> None:
    taken = Port("h", "float", (2, "b", 8))
    for other in (Port("hn", "float16", (2, "b", 8)), Port("hn", "float", (2, 8)), Port("hn", "float", (2, "b", 9))):
        assert list(by_name(Signature((taken,), (other,)))) == []


def test_names_that_say_nothing_are_not_guessed(tmp_path: Path, refused: Refused) -> None:
    sides = pair(tmp_path, "left", "right")
    with refused("compare/state") as refusal:
        compared(*sides, steps=4, inputs=ones())
    assert "--state x=y" in refusal.problem.fix
    assert compared(*sides, steps=4, inputs=ones(), state=["left=right"]).part(Steps).first == "step 3 of 4"
    with refused("compare/state"):
        compared(*sides, steps=4, inputs=ones(), state=["left=wrong"])


def test_a_star_stands_for_the_same_text(tmp_path: Path) -> None:
    sides = pair(tmp_path, "kv_a_of", "of_a_kv")
    part = compared(*sides, inputs=ones(), state=["kv_*_of=of_*_kv"]).part(Steps)
    assert [(one.input, one.output) for one in part.state] == [("kv_a_of", "of_a_kv")]
    assert len(part.steps) == 4


def test_metadata_says_the_pair_and_the_first_state(tmp_path: Path) -> None:
    stored = [
        {"input": "left", "output": "right", "of": "left", "dtype": "float", "shape": [1, 3], "initial": {"fill": 1}}
    ]
    names = "left", "right"
    model = file(tmp_path / "m.onnx", PLAIN.format(*names), **{"onnxsmith.state": stored})
    cut = file(tmp_path / "cut.onnx", CUT.format(*names))
    two_rows = [{"x": np.ones((2, 3), np.float32)}] * 3
    assert compared(model, cut, steps=4, inputs=ones()).part(Steps).first == "step 2 of 4"
    assert compared(cut, model, steps=4, inputs=two_rows).part(Steps).first == "step 2 of 4"


def test_a_given_state_begins_anew(tmp_path: Path) -> None:
    inputs = [*ones(2), {**ones(1)[0], "state": np.zeros((1, 3), np.float32)}, *ones(1)]
    assert compared(*pair(tmp_path), steps=4, inputs=inputs).part(Steps).first == ""


def test_an_empty_past_that_grows(tmp_path: Path) -> None:
    model = file(tmp_path / "m.onnx", GROWING.format("y = Add(x, r)"))
    late = (
        "n2 = Shape(present_0)\n i = Gather(n2, one)\n three = Constant<value_ints = [3]>()\n g = Greater(i, three)\n "
        "d = Cast<to = 1>(g)\n z = Mul(d, x)\n w = Add(x, z)\n y = Add(w, r)"
    )
    other = file(tmp_path / "o.onnx", GROWING.format(late))
    steps = [(2, 2), (1, 3), (1, 4), (1, 5)]
    for number, (new, total) in enumerate(steps):
        arrays = {"x": np.ones((1, new, 2), np.float32), "mask": np.ones((1, total), np.int64)}
        np.savez(tmp_path / f"s{number}.npz", **arrays)
    inputs = [str(tmp_path / f"s{number}.npz") for number in range(4)]
    part = compared(model, other, steps=4, inputs=inputs).part(Steps)
    assert part.state[0].first == "empty float32[1,0,2]"
    assert part.first == "step 3 of 4 (s2.npz)"
    made = compared(model, other, steps=5)  # generated: one token in each step, and a mask as long as the past and it
    assert made.part(Steps).first == "step 4 of 5"
    assert made.part(Verification).sizes["total"] == (1, 2, 3, 4, 5)


def test_a_step_that_the_reference_refuses_is_named(tmp_path: Path, refused: Refused) -> None:
    model = file(tmp_path / "m.onnx", GROWING.format("y = Add(x, r)"))
    given = {"x": np.ones((1, 1, 2), np.float32), "mask": np.ones((1, 2), np.int64)}
    first = {"x": np.ones((1, 2, 2), np.float32), "mask": np.ones((1, 2), np.int64)}
    with refused("compare/step") as refusal:
        compared(model, model, steps=3, inputs=[first, given])
    assert "step 2 of 3" in refusal.problem.what
    assert "past_0 [1, 2, 2]" in refusal.problem.where


UNSTABLE = HEAD + (
    "g (float[b,3] x, float[b,3] state) => (float[b,3] y, float[b,3] stateN) <float k = {{{}}}, float two = {{2}}> "
    "{{ s = Mul(state, k)\n t = Mul(x, two)\n stateN = Sub(s, t)\n y = Tanh(stateN) }}"
)
"""A state that stays what it is if it equals x, and from which a small error grows threefold in each step."""


def unstable(folder: Path, at: float, text: str) -> Report:
    model = file(folder / "m.onnx", UNSTABLE.format("3.0"))
    value = np.full((1, 3), at, np.float32)
    inputs = [{"x": value, "state": value}, {"x": value}]
    return compared(model, file(folder / "o.onnx", text), steps=14, inputs=inputs)


def test_small_errors_of_each_step_add_up(tmp_path: Path) -> None:
    """A factor that is off by two roundings: every step excuses it, many steps do not, and the reference is exact."""
    report = unstable(tmp_path, 1.0, UNSTABLE.format(3.0 + 2**-21))
    part = report.part(Steps)
    assert part.first == ""
    assert part.drifts
    assert "small errors of each step add up" in part.drift
    assert report.verdict is Verdict.DIFFERENT
    assert report.part(Verification).outputs[1].reason == part.drift


def test_rounding_that_grows_is_no_difference(tmp_path: Path) -> None:
    otherwise = UNSTABLE.format("3.0").replace("s = Mul(state, k)\n t = Mul(x, two)\n stateN = Sub(s, t)",
        "d = Sub(state, x)\n e = Mul(d, two)\n stateN = Add(e, state)\n s = Neg(k)")  # fmt: skip
    report = unstable(tmp_path, 0.1, otherwise.replace("s = Neg(k)", ""))
    part = report.part(Steps)
    assert (part.first, part.drifts) == ("", False)
    assert report.verdict is Verdict.DONE


class Recurrent(torch.nn.Module):
    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = x + state
        return made.tanh(), made


def test_a_torch_module_as_reference(tmp_path: Path) -> None:
    model, cut = pair(tmp_path)
    module = (Recurrent(), (torch.ones(1, 3), torch.zeros(1, 3)))
    assert compared(module, model, steps=4, inputs=ones()).verdict is Verdict.DONE
    report = compared(module, cut, steps=4, inputs=ones(), per_layer=True)
    assert report.part(Steps).first == "step 3 of 4"
    assert report.part(Layers).input == "step 3 of 4"
    assert report.part(Layers).culprits


def test_the_command_with_chunks_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pair(tmp_path)
    np.savez("chunks.npz", x=np.ones((6, 1, 3), np.float32))
    report = Compare("m.onnx", "cut.onnx", input=("chunks.npz",), only_given=True, steps=6).run()
    assert report.part(Steps).first == "step 3 of 6 (chunks.npz, sample 3)"
    assert [one.label for one in report.part(Steps).steps][5] == "step 6 of 6 (chunks.npz, sample 6)"
    assert Report.from_json(report.to_json()) == report


def test_a_stored_state_is_read_as_it_was_written() -> None:
    model = from_text(PLAIN.format("h", "hn"))
    first = np.arange(3, dtype=np.float32)[None]
    ports = {port.name: port for port in signature(model).inputs}
    text = json.dumps(list(Carried("h", {"h": first}, {"h": "h"}).described(ports, {"h": "hn"})))
    model.metadata_props["onnxsmith.state"] = text
    (held,) = stored(model)
    assert (held.input, held.output, held.first.tolist()) == ("h", "hn", first.tolist())
    model.metadata_props["onnxsmith.state"] = '{"other": 1}'
    assert stored(model) == ()
