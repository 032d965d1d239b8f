"""prune: what is written is proven and measured; everything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.pruning import Pruning
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.cli.application import app
from onnxsmith.cli.commands.quantize import Circumstances, Prune
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.precision.pruning.channel_groups import Group
from onnxsmith.precision.pruning.channel_selection import Choice, Search, share_of
from onnxsmith.precision.pruning.operators.statistics import Mixing
from onnxsmith.runtimes.base import get
from tests.conftest import Refused
from tests.precision.pruning import model, shapes
from tests.precision.test_pruning_operators import HEADS

WIDTH, CLASSES = 24, 6
TEXT = (
    f"g (float[n,{WIDTH}] x, float[{WIDTH},{WIDTH}] w1, float[{WIDTH}] b1, float[{WIDTH},{WIDTH}] w2, "
    f"float[{WIDTH},{CLASSES}] w3) => (float[n,{CLASSES}] y) "
    "{ a = Gemm(x, w1, b1) r = Relu(a) c = MatMul(r, w2) d = Relu(c) y = MatMul(d, w3) }"
)


def stored(folder: Path, *, idle: int = 0) -> Path:
    """A classifier whose first `idle` channels of both hidden layers are read with hardly any weight, and are made
    with hardly any."""
    made = model(TEXT)
    for name, rows in (("w2", True), ("w3", True), ("w1", False), ("w2", False), ("b1", None)):
        value = made.graph.initializers[name]
        assert value.const_value is not None
        array = np.array(value.const_value.numpy())
        array[(slice(0, idle),) if rows in (True, None) else (slice(None), slice(0, idle))] *= 1e-3
        value.const_value = ir.tensor(array, name=name)
    path = folder / "model.onnx"
    save(made, path)
    return path


def samples(path: Path, count: int = 40, seed: int = 0) -> list[tuple[dict[str, Any], int]]:
    """Inputs with the classes that the model itself gives."""
    draw = np.random.default_rng(seed)
    found = []
    with get("onnxruntime").prepare(path) as session:
        for _ in range(count):
            x = draw.standard_normal((1, WIDTH)).astype(np.float32)
            found.append(({"x": x}, int(np.argmax(np.asarray(session.run({"x": x})["y"])))))
    return found


def pruned(path: Path, **options: Any) -> Result:
    return onnxsmith.prune(path, **{"measure_time": False, **options})


def part(result: Result) -> Pruning:
    return next(one for one in result.report.parts if isinstance(one, Pruning))


def test_idle_channels_go(tmp_path: Path) -> None:
    path, out, kept = stored(tmp_path, idle=12), tmp_path / "p.onnx", tmp_path / "kept.json"
    result = pruned(path, output=out, share="50%", data=samples(path), metric="top1", keep_list=kept)
    assert result.report.verdict is Verdict.DONE
    told = part(result)
    assert (told.before, told.after) == (1.0, 1.0)
    assert told.bound is None
    assert (told.removed, told.channels) == (24, 48 + CLASSES)
    assert [(one.before, one.after) for one in told.layers] == [(24, 12), (24, 12)]
    assert [(one.count, one.reason) for one in told.fixed] == [(6, "the channels reach the output 'y' of the graph")]
    assert shapes(load(out)) == {"w1": (24, 12), "b1": (12,), "w2": (12, 12), "w3": (12, 6)}
    assert told.macs_before is not None
    assert told.macs_after is not None
    assert told.macs_before == 24 * 24 * 2 + 24 * 6
    assert told.macs_after == 24 * 12 + 12 * 12 + 12 * 6
    assert told.parameters_after == told.macs_after + 12
    assert told.bytes_after == 4 * told.parameters_after
    rest = list(range(12, 24))
    found = json.loads(kept.read_text())
    assert found == {"b1": {"0": rest}, "w1": {"1": rest}, "w2": {"0": rest, "1": rest}, "w3": {"0": rest}}
    assert "24 of 54 channels removed" in result.report.headline
    assert "0.39 of the multiply-adds" in result.report.headline


def test_quiet_says_what_the_result_costs(tmp_path: Path) -> None:
    """Verbs whose result differs on purpose say how much, in one line, also with -q."""
    path, out = stored(tmp_path), tmp_path / "o.onnx"
    verbs = (["prune", str(path), "-o", str(out), "--no-time"], ["quantize", str(path), "-o", str(out), "--no-time"])
    for words in (*verbs, ["bisect", str(path), "-o", str(tmp_path / "keep.txt")]):
        found = CliRunner().invoke(app, [*words, "-q"])
        assert found.exit_code == 0
        (line,) = found.stdout.splitlines()
        assert line.startswith(f"{path}: ")
        cost = "verified" if words[0] == "bisect" else "agreement of the outputs 1 → "
        assert cost in line


def test_without_data_accuracy_was_not_measured(tmp_path: Path) -> None:
    result = pruned(stored(tmp_path))
    assert "accuracy was not measured" in result.report.headline
    assert part(result).share == 0.3


def test_the_largest_share_within_the_budget(tmp_path: Path) -> None:
    path = stored(tmp_path, idle=12)
    result = pruned(path, data=samples(path), metric="top1", budget="1%")
    told = part(result)
    assert result.report.verdict is Verdict.DONE
    assert told.after is not None
    assert told.bound is not None
    assert told.after >= told.bound
    assert told.removed >= 24
    assert 1 < len(told.curve) <= 12
    assert {one.meets for one in told.curve} == {True, False}


@pytest.mark.usefixtures("unmeasured_power")
def test_a_budget_that_nothing_meets_writes_nothing(tmp_path: Path) -> None:
    path, out = stored(tmp_path), tmp_path / "p.onnx"

    def strict(_: list[Any], __: list[Any]) -> float:
        return next(calls)

    calls = iter([1.0, *[0.0] * 20])
    result = pruned(path, output=out, data=samples(path), metric=strict, budget=0.0)
    assert result.report.verdict is Verdict.FAILED
    assert [one.id for one in result.report.problems] == ["prune/budget-not-met"]
    assert not out.exists()
    assert result.model is None


def test_a_share_of_less_than_a_channel_does_not_meet_a_budget(tmp_path: Path) -> None:
    path = stored(tmp_path)
    result = pruned(path, data=samples(path), budget=0.0)  # the cosine of equal outputs: any channel changes them
    assert [one.id for one in result.report.problems] == ["prune/budget-not-met"]
    assert "the smallest share that removes a channel" in result.report.problems[0].why


def test_channels_with_small_values_go_by_activation(tmp_path: Path) -> None:
    """The weights of the first channels are as large as others', but a bias keeps their values at 0."""
    made = model(TEXT)
    bias = np.zeros(WIDTH, np.float32)
    bias[:8] = -100
    made.graph.initializers["b1"].const_value = ir.tensor(bias, name="b1")
    path, kept = tmp_path / "m.onnx", tmp_path / "kept.json"
    save(made, path)
    pruned(path, by="activation", share=8 / 24, keep_list=kept, data=samples(path), metric="top1")
    assert json.loads(kept.read_text())["b1"] == {"0": list(range(8, 24))}


def test_a_multiple_stays(tmp_path: Path) -> None:
    result = pruned(stored(tmp_path), share="50%", multiple=8)
    assert [(one.before, one.after) for one in part(result).layers] == [(24, 16), (24, 16)]


def test_all_groups_together(tmp_path: Path) -> None:
    made = model(TEXT)
    value = made.graph.initializers["w1"]
    assert value.const_value is not None
    array = np.array(value.const_value.numpy())
    array[:, 12:] *= 1e-3  # relative to its layer, the second half of the first layer is what matters least
    value.const_value = ir.tensor(array, name="w1")
    path = tmp_path / "m.onnx"
    save(made, path)
    told = part(pruned(path, share="20%", all_together=True))
    assert sum(one.before - one.after for one in told.layers) == told.removed == 9  # of 48 that may go
    assert told.layers[0].name == "Gemm:a"
    assert told.layers[0].after <= 17


def test_a_channel_is_what_mixes_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A family that passes channels through a Softmax over them: the shapes fit, the proof fails, nothing is
    written."""
    monkeypatch.setattr(Mixing, "_mixed", lambda *_: set())
    made = model(TEXT.replace("r = Relu(a)", "r = Softmax<axis = -1>(a)"))
    path, out = tmp_path / "m.onnx", tmp_path / "p.onnx"
    save(made, path)
    result = pruned(path, output=out, keep_list=tmp_path / "kept.json")
    assert result.report.verdict is Verdict.DIFFERENT
    assert [one.id for one in result.report.problems] == ["prune/not-equal"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.onnx"]


@pytest.mark.parametrize(
    ("options", "id_"),
    [
        ({"share": "0%"}, "prune/share"),
        ({"share": "100%"}, "prune/share"),
        ({"share": "many"}, "prune/share"),
        ({"share": "3%"}, "prune/nothing"),
        ({"share": "50%", "multiple": 24}, "prune/nothing"),
        ({"multiple": 0}, "prune/multiple"),
        ({"by": "luck"}, "prune/unknown-measure"),
        ({"metric": "luck"}, "quantize/unknown-metric"),
    ],
)
def test_what_is_refused(tmp_path: Path, options: dict[str, Any], id_: str, refused: Refused) -> None:
    with refused(id_):
        pruned(stored(tmp_path), **options)


def test_a_model_without_channels(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "m.onnx"
    save(model("g (float[n,4] x, float[4,4] w) => (float[n,4] y) { y = MatMul(x, w) }"), path)
    with refused("prune/nothing") as refusal:
        pruned(path)
    assert "the channels reach the output 'y' of the graph" in refusal.problem.why


def test_the_command(tmp_path: Path) -> None:
    path, out = stored(tmp_path), tmp_path / "p.onnx"
    report = Prune(str(path), output=str(out), share="25%", rest=Circumstances(no_time=True)).run()
    assert report.verdict.exit_code == 0
    assert out.exists()
    assert "12 of 54 channels removed" in report.headline


@pytest.mark.parametrize("place", ["no/folder/kept.json", "/proc/kept.json"])
def test_all_files_or_none(tmp_path: Path, place: str) -> None:
    out = tmp_path / "p.onnx"
    path = stored(tmp_path)
    with pytest.raises(OnnxsmithError, match="save/") as error:
        pruned(path, output=out, keep_list=tmp_path / place)
    assert error.value.problem.fix
    assert not out.exists()
    with pytest.raises(OnnxsmithError, match="save/no-folder"):
        pruned(path, output=tmp_path / "no" / "p.onnx", keep_list=tmp_path / "kept.json")
    assert not (tmp_path / "kept.json").exists()


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError, match="the target is a folder"):
        pruned(stored(tmp_path), output=tmp_path)


@pytest.mark.parametrize("options", [{}, {"budget": "1%"}])
def test_a_metric_needs_data(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OnnxsmithError, match="quantize/no-data") as error:
        pruned(stored(tmp_path), metric="top1", **options)
    assert 'metric="top1"' in error.value.problem.where


def test_multiply_adds_are_those_of_the_given_sizes(tmp_path: Path) -> None:
    """A size that a shape is declared to have by a name of its own follows from the inputs', too."""
    path = tmp_path / "m.onnx"
    save(model(TEXT.replace(f"(float[n,{CLASSES}] y)", f"(float[rows,{CLASSES}] y)")), path)
    each = 24 * 24 * 2 + 24 * 6
    told = part(pruned(path))
    assert (told.macs_before, told.sizes) == (each, {"n": 1})
    told = part(pruned(path, sizes={"n": 5}))
    assert (told.macs_before, told.sizes) == (5 * each, {"n": 5})
    assert "at n=5" in str(list(told.blocks()))
    with pytest.raises(OnnxsmithError, match="inspect/unknown-dim"):
        pruned(path, sizes={"m": 5})


def test_layers_of_a_keep_list_stay(tmp_path: Path) -> None:
    path, keep = stored(tmp_path), tmp_path / "keep.txt"
    keep.write_text("# whole\nGemm:*\n", encoding="utf-8")
    report = Prune(str(path), keep=str(keep), share="50%", rest=Circumstances(no_time=True)).run()
    told = next(one for one in report.parts if isinstance(one, Pruning))
    assert [(one.name, one.after) for one in told.layers] == [("MatMul:c", 12)]
    assert "Gemm 'Gemm:a' is on the given keep-list" in [one.reason for one in told.fixed]
    with pytest.raises(OnnxsmithError, match="prune/unknown-layer"):
        pruned(path, keep=["no such layer"])


def test_groups_that_the_multiple_leaves_alone_are_told(tmp_path: Path) -> None:
    made = model(
        "g (float[n,4] x, float[4,8] w1, float[8,24] w2, float[24,3] w3) => (float[n,3] y) "
        "{ a = MatMul(x, w1) r = Relu(a) c = MatMul(r, w2) y = MatMul(c, w3) }"
    )
    path = tmp_path / "m.onnx"
    save(made, path)
    told = part(pruned(path, share="50%", multiple=8))
    assert [(one.name, one.after) for one in told.layers] == [("MatMul:c", 16)]
    assert (told.removed, told.free, told.channels) == (8, 32, 35)
    (idle,) = [one for one in told.fixed if one.layers == ("MatMul:a",)]
    assert (
        idle.reason
        == "no smaller number than 8 channels is a multiple of 8; --multiple 1 allows any number of channels"
    )
    assert "8 of 35 removed: 0.25 of the 32 that can be removed" in str(list(told.blocks()))


def test_all_counts_are_output_channels_of_layers(tmp_path: Path) -> None:
    """Two residual layers and four heads of four columns, of which the share of 30% removes one: a head is twelve
    output channels of three layers. All counts of a report add up."""
    text = HEADS.replace("o = MatMul(h, wo)", "f1 = MatMul(h, wf) f2 = Relu(f1) o = MatMul(f2, wo)")
    path = tmp_path / "m.onnx"
    save(model(text.replace("float[16,16] wo,", "float[16,2] wf, float[2,16] wo,")), path)
    told = part(pruned(path, share="30%", multiple=1))
    assert [(one.before, one.after) for one in told.layers] == [(16, 12)] * 3
    assert (told.removed, told.free, told.channels) == (12, 48 + 2, 48 + 2 + 16)
    assert [(one.count, one.is_free) for one in told.fixed] == [(16, False), (2, True)]
    assert "; 16 of 66 channels cannot be removed: " in told.line()
    assert "12 of 66 channels removed" in told.summary()


def test_wide_layers_keep_a_multiple_of_8(tmp_path: Path) -> None:
    made = model(
        "g (float[n,4] x, float[4,20] w1, float[20,40] w2, float[40,3] w3) => (float[n,3] y) "
        "{ a = MatMul(x, w1) r = Relu(a) c = MatMul(r, w2) y = MatMul(c, w3) }"
    )
    path = tmp_path / "m.onnx"
    save(made, path)
    assert [one.after for one in part(pruned(path, share="30%")).layers] == [14, 32]
    assert [one.after for one in part(pruned(path, share="30%", multiple=1)).layers] == [14, 28]


def test_a_weight_that_is_computed_is_told(tmp_path: Path) -> None:
    made = model(
        "g (float[n,3,6,6] x, float[8,3,3,3] w, float[8,1,1,1] scale, float[4,8,1,1] w2) => (float[n,4,4,4] y) "
        "{ w1 = Mul(w, scale) a = Conv(x, w1) r = Relu(a) y = Conv(r, w2) }"
    )
    path = tmp_path / "m.onnx"
    save(made, path)
    with pytest.raises(OnnxsmithError, match="prune/nothing") as error:
        pruned(path)
    assert "its weight 'w1' is computed by Mul" in error.value.problem.why
    assert "onnxsmith simplify" in error.value.problem.fix


def test_a_quantised_model_is_told(tmp_path: Path) -> None:
    made = model(
        "g (float[n,8] x, float[8,4] w, float[4] var) => (float[n,4] y) "
        "{ q = QuantizeLinear(w, var) d = DequantizeLinear(q, var) a = MatMul(x, d) y = Relu(a) }"
    )
    path = tmp_path / "m.onnx"
    save(made, path)
    with pytest.raises(OnnxsmithError, match="prune/quantised"):
        pruned(path)


def test_a_rewrite_that_is_not_proven_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.precision.pruning import proof as command

    made = model(
        "g (float[t,n,6] x, float[1,4,6] w, float[1,4,4] r, float[1,1,4] zeros, float[4,5] w2) => (float[1,n,5] y) "
        "{ a, last = RNN<hidden_size = 4>(x, w, r, , , zeros) y = MatMul(last, w2) }"
    )
    made.graph.initializers["zeros"].const_value = ir.tensor(np.zeros((1, 1, 4), np.float32), name="zeros")
    path = tmp_path / "m.onnx"
    save(made, path)
    seen: list[bool] = []

    class Unequal:
        equal = False

    verify_models = command.verify_models

    def unequal(*given: Any, **named: Any) -> Any:
        """Answers the first question, which is the one about the rewrite."""
        if seen:
            return verify_models(*given, **named)
        seen.append(True)
        return Unequal()

    monkeypatch.setattr(command, "verify_models", unequal)
    pruned(path, share="50%", sizes={"n": 1})
    assert seen


# Shares


@pytest.mark.parametrize(("given", "share"), [("30%", 0.3), ("0.25", 0.25), (0.5, 0.5), ("12.5 %", 0.125)])
def test_shares(given: str | float, share: float) -> None:
    assert share_of(given) == share


def test_the_least_go_and_one_stays() -> None:
    group = Group(("a",), tuple(((("v", 1), np.array([index])),) for index in range(10)), ())
    scores = [np.arange(10.0)[::-1]]

    def left(choice: Choice, share: float) -> list[int]:
        gone = {int(channel[0][1][0]) for channel in choice.gone([group], scores, share)}
        return sorted(set(range(10)) - gone)

    assert left(Choice(), 0.3) == [0, 1, 2, 3, 4, 5, 6]
    assert left(Choice(), 0.99) == [0]
    assert left(Choice(is_global=True), 0.3) == [0, 1, 2, 3, 4, 5, 6]
    assert left(Choice(4), 0.3) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert left(Choice(4), 0.6) == [0, 1, 2, 3]
    assert left(Choice(16), 0.6) == list(range(10))


@pytest.mark.parametrize(
    ("multiple", "count", "each", "found"),
    [
        (8, 6, (48,), 1),
        (8, 12, (2,), 4),
        (8, 40, (1, 1), 8),
        (None, 31, (1,), 1),
        (None, 32, (1,), 8),
        (None, 4, (9,), 8),
    ],
)
def test_a_multiple_is_of_a_layers_channels(
    multiple: int | None, count: int, each: tuple[int, ...], found: int
) -> None:
    """Heads are many channels of a layer at once."""
    group = Group(("a",), tuple(((("v", 1), np.array([index])),) for index in range(count)), (), each=each)
    assert Choice(multiple).multiple_of(group) == found


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.61])
def test_the_search_halves(limit: float) -> None:
    search = Search(lambda share: share <= limit, 12, lambda share: int(share * 1e6))
    found = search.largest(0.9)
    assert found is not None
    assert limit - 0.005 <= found <= limit
    assert len(search.tried) <= 12
    assert Search(lambda _: True, 12, lambda _: 1).largest(0.9) == 0.9
    assert Search(lambda _: False, 12, lambda _: 1).largest(0.9) is None


def test_the_search_tries_a_cut_once() -> None:
    """Four channels: many shares remove the same ones, and those that remove none are no cut."""
    search = Search(lambda share: int(share * 4) <= 2, 12, lambda share: int(share * 4))
    found = search.largest(0.9)
    assert found is not None
    assert int(found * 4) == 2
    assert len({int(share * 4) for share in search.tried}) == len(search.tried) == 3
    none = Search(lambda _: False, 12, lambda share: int(share * 4))
    found = none.largest(0.9)
    assert found is None or int(found * 4) == 0
    assert len(none.tried) == 2


def test_a_budget_evaluates_a_cut_once(tmp_path: Path) -> None:
    path = stored(tmp_path, idle=12)
    told = part(pruned(path, data=samples(path), metric="top1", budget="1%", multiple=8))
    removed = [one.removed for one in told.curve]
    assert len(set(removed)) == len(removed) <= 3
    with pytest.raises(OnnxsmithError, match="prune/nothing"):
        pruned(path, data=samples(path), metric="top1", budget="1%", multiple=24)


# Multiples


def test_positions_of_groups_that_cannot_become_a_multiple_say_so(tmp_path: Path) -> None:
    """Eight groups of four positions: a position is eight channels, one in each group. Nine groups: only all of eight
    positions are a multiple of 8."""
    text = (
        "g (float[n,3,4,4] x, float[72,3,1,1] w1, float[72,8,1,1] w2, float[5,72,1,1] w3) => (float[n,5,4,4] y) "
        "{ a = Conv(x, w1) r = Relu(a) b = Conv<group = 9>(r, w2) s = Relu(b) y = Conv(s, w3) }"
    )
    path = tmp_path / "m.onnx"
    save(model(text), path)
    with pytest.raises(OnnxsmithError, match="prune/nothing") as error:
        pruned(path, share="80%")
    assert "multiple=1" in error.value.problem.fix
    said = "can only be removed in 8 groups of 9: no smaller number than 72 channels is a multiple of 8"
    assert f"channels of this layer {said}" in error.value.problem.why
    told = part(pruned(path, share="80%", multiple=1))
    assert [(one.after, one.each) for one in told.layers] == [(18, 9), (18, 9)]


def test_wide_layers_in_several_groups_are_told(tmp_path: Path) -> None:
    """The halves of a layer go to readers that share one half with another layer: no half is wide."""
    text = (
        "g (float[n,4] x, float[4,48] w1, int64[2] n_20_28, float[4,20] w2, float[20,3] w3, float[28,3] w4) "
        "=> (float[n,3] y) { a = MatMul(x, w1) p, q = Split<axis = 1>(a, n_20_28) o = MatMul(x, w2) s = Add(p, o) "
        "t = MatMul(s, w3) u = MatMul(q, w4) y = Add(t, u) }"
    )
    path = tmp_path / "m.onnx"
    save(model(text), path)
    told = part(pruned(path, share="30%"))
    assert [one.after for one in told.layers] == [34, 14]
    assert any("do not keep a multiple of 8 channels" in note and "MatMul:a: 34" in note for note in told.notes)
