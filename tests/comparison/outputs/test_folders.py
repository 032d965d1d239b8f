"""`compare ORIGINAL FOLDER`: graphs of other tools against their original, by themselves and in generated texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.folders import FolderFiles, FolderParts, GeneratedTokens
from onnxsmith.base.report.parts.verification import Steps
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs.folders.graph_ports import cache_name
from onnxsmith.comparison.outputs.folders.layouts import LAYOUTS, read
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.comparison.outputs.toy_decoders import CONFIG, DECODER, folder

LATER_PARTS = {
    "decoder_model.onnx": DECODER.replace(", float[b,1,p,4] past_key_0, float[b,1,p,4] past_value_0", "")
    .replace("Concat<axis=2>(past_key_0, k)", "Identity(k)")
    .replace("Concat<axis=2>(past_value_0, v)", "Identity(v)"),
    "decoder_with_past_model.onnx": DECODER,
}
BODY = DECODER[DECODER.index("{ w =") :].strip("{} ")
WEIGHTS = DECODER[DECODER.index("<float[8,4]") : DECODER.index("{ w =")]
OUTPUTS = "(float[b,s,8] logits, float[b,1,t,4] present_key_0, float[b,1,t,4] present_value_0)"
FIRST_BODY = BODY.replace("Concat<axis=2>(past_key_0, k)", "Identity(k)").replace(
    "Concat<axis=2>(past_value_0, v)", "Identity(v)"
)


def _branch(name: str, body: str) -> str:
    for word in ("logits", "present_key_0", "present_value_0"):
        body = body.replace(word, f"{word}_{name}")
    outputs = OUTPUTS.strip("()")
    for word in ("logits", "present_key_0", "present_value_0"):
        outputs = outputs.replace(word, f"{word}_{name}")
    return f"{name} () => ({outputs}) {{ {body} }}"


MERGED = (
    DECODER[: DECODER.index(") =>")]
    + f", bool[1] use_cache_branch) => {OUTPUTS} {WEIGHTS} {{ logits, present_key_0, present_value_0 = "
    + f"If(use_cache_branch) <then_branch = {_branch('later', BODY)}, else_branch = {_branch('first', FIRST_BODY)}> }}"
)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return folder(tmp_path / "original")


def compared(original: Path, candidate: Path, **options: object) -> Report:
    return onnxsmith.compare(original, candidate, **options).report  # type: ignore[arg-type]


def refused(original: Path, candidate: Path, wanted: str, says: str, **options: object) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        compared(original, candidate, **options)
    assert raised.value.problem.id == wanted
    assert says in str(raised.value.problem)


def test_an_equal_folder(original: Path, tmp_path: Path) -> None:
    report = compared(original, folder(tmp_path / "copy"))
    assert report.verdict is Verdict.DONE
    assert report.headline == "original and copy (one graph): equal in 1 graph and 16 tokens of 2 texts"
    assert [one.calls for one in report.part(FolderParts).parts] == [8]
    tokens = report.part(GeneratedTokens)
    assert dict(tokens.faults) == {"key and value of a layer are swapped": True}
    assert len(report.part(Steps).steps) == 8
    assert Report.from_json(report.to_json()) == report


FAULTS = {
    "caches swapped": (DECODER.replace("(past_key_0, k)", "(past_value_0, k)"), "step 2 of 8"),
    "another sign": (DECODER.replace("scores = MatMul(k, turned)", "l = Neg(k) scores = MatMul(l, turned)"),
        "the first call"),
    "other weight": (DECODER.replace("-2.2000", "-2.3000", 1), "the first call"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_call(name: str, original: Path, tmp_path: Path) -> None:
    text, call = FAULTS[name]
    report = compared(original, folder(tmp_path / "wrong", text))
    assert report.verdict is Verdict.DIFFERENT
    assert f"DIFFERENT, first in {call}, model.onnx, output " in report.headline
    assert report.problems[0].id == "verify/different"


def test_a_difference_that_only_caches_carry(original: Path, tmp_path: Path) -> None:
    """The keys are read with a sign and written with it, so each call from the original's caches is wrong."""
    text = DECODER.replace("(past_key_0, k)", "(minus, k)").replace("{ w =", "{ minus = Neg(past_key_0) w =")
    report = compared(original, folder(tmp_path / "wrong", text))
    assert "first in step 2 of 8" in report.headline


def test_caches_that_nothing_reads_prove_nothing(tmp_path: Path) -> None:
    text = DECODER.replace("MatMul(shares, present_value_0)", "MatMul(shares, present_value_0) none = Identity(v)")
    blind = text.replace("flat = Squeeze(mixed, one)", "flat = Squeeze(v, one)")
    report = compared(folder(tmp_path / "a", blind), folder(tmp_path / "b", blind))
    assert report.verdict is Verdict.CANNOT_TELL
    assert "a fault would not be noticed: key and value of a layer are swapped" in report.headline
    assert report.problems[-1].id == "verify/cannot-tell"


def test_a_token_that_the_tolerance_allows_is_named(original: Path, tmp_path: Path) -> None:
    wrong = folder(tmp_path / "wrong", DECODER.replace("out = {-2.2000, -0.6000", "out = {-1.2, 0.6"))
    assert compared(original, wrong).verdict is Verdict.DIFFERENT
    report = compared(original, wrong, tolerance=0.5)
    assert report.verdict is Verdict.DONE
    assert "a text goes on with another token from token " in report.headline
    assert not report.part(GeneratedTokens).differs


def test_two_files_for_the_calls(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "two"
    for name, text in LATER_PARTS.items():
        folder(path, text, name)
    report = compared(original, path)
    assert report.headline == "original and two (optimum): equal in 2 graphs and 16 tokens of 2 texts"
    assert [(one.role, one.calls) for one in report.part(FolderParts).parts] == [("first call", 1), ("later calls", 7)]
    assert (
        compared(path, original).headline == "two and original (one graph): equal in 1 graph and 16 tokens of 2 texts"
    )


def test_a_merged_file_in_the_folder_of_transformers_js(original: Path, tmp_path: Path) -> None:
    path = folder(tmp_path / "merged" / "onnx", MERGED, "decoder_model_merged.onnx").parent
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "onnx" / "decoder_model_merged_q4.onnx").write_bytes(b"")
    report = compared(original, path)
    assert report.headline == (
        "original and merged (transformers.js): equal in 2 graphs and 16 tokens of 2 texts; not compared: "
        "decoder_model_merged_q4.onnx"
    )
    wrong = tmp_path / "wrong"
    shutil.copytree(path, wrong)
    save(
        from_text(MERGED.replace("(past_key_0, k)", "(past_value_0, k)")), wrong / "onnx" / "decoder_model_merged.onnx"
    )
    assert "first in step 2 of 8, decoder_model_merged.onnx" in compared(original, wrong).headline


def test_names_of_genai_config(original: Path, tmp_path: Path) -> None:
    text = DECODER.replace("past_key_0", "k_in_0").replace("past_value_0", "v_in_0").replace("input_ids", "words_in")
    path = folder(tmp_path / "genai", text, "decoder.onnx")
    inputs = {"input_ids": "words_in", "past_key_names": "k_in_%d", "past_value_names": "v_in_%d"}
    decoder = {"filename": "decoder.onnx", "num_hidden_layers": 1, "inputs": inputs}
    (path / "genai_config.json").write_text(
        json.dumps({"model": {"vocab_size": 8, "eos_token_id": 2, "decoder": decoder}})
    )
    report = compared(original, path)
    assert report.headline == "original and genai (onnxruntime-genai): equal in 1 graph and 16 tokens of 2 texts"


def test_parts_of_a_pipeline(tmp_path: Path) -> None:
    graph = '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,3] y) { a = Relu(x) y = Neg(a) }'
    for name in ("a", "b"):
        for part in ("unet", "text_encoder"):
            folder(tmp_path / name / part, graph)
        (tmp_path / name / "model_index.json").write_text(json.dumps({"unet": ["diffusers", "UNet"]}))
    assert compared(tmp_path / "a", tmp_path / "b").headline == ("a and b (diffusers): text_encoder equal; unet equal")
    save(from_text(graph.replace("Neg(a)", "Abs(a)")), tmp_path / "b" / "unet" / "model.onnx")
    report = compared(tmp_path / "a", tmp_path / "b")
    assert report.verdict is Verdict.DIFFERENT
    assert "unet DIFFERENT" in report.headline
    shutil.rmtree(tmp_path / "a" / "unet")
    report = compared(tmp_path / "a", tmp_path / "b")
    assert report.verdict is Verdict.CANNOT_TELL
    assert "unet was not compared" in report.headline


def words(*listed: str, **more: object) -> str:
    model = {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(listed)}, "unk_token": "[UNK]"}
    return json.dumps(
        {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model, **more}
    )


TOKENIZER = words("[UNK]", "the", "quick")
FILES: dict[str, tuple[str, str, str, str]] = {
    "two words swapped": ("tokenizer.json", TOKENIZER, words("[UNK]", "quick", "the"), "2 entries of the"),
    "a word more": ("tokenizer.json", TOKENIZER, words("[UNK]", "the", "quick", "fox"), "1 entry of the"),
    "a normalizer": (
        "tokenizer.json", TOKENIZER, words("[UNK]", "the", "quick", normalizer={"type": "Lowercase"}),
        "its part 'normalizer'",
    ),
    "merges": ("merges.txt", "a b\n", "b a\n", "the contents differ"),
    "lines of a vocabulary": ("vocab.txt", "a\nb\n", "b\na\n", "2 entries of the"),
    "the end of a text": (
        "config.json", json.dumps(CONFIG), json.dumps({**CONFIG, "eos_token_id": 3}), "eos_token_id is 3 here",
    ),
    "a special token": (
        "special_tokens_map.json", '{"eos_token": {"content": "</s>"}}', '{"eos_token": "<end>"}',
        "eos_token is '<end>'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_stale_file_is_a_difference(name: str, original: Path, tmp_path: Path) -> None:
    file, right, wrong, says = FILES[name]
    copy = folder(tmp_path / "copy")
    (original / file).write_text(right)
    (copy / file).write_text(wrong)
    report = compared(original, copy)
    assert report.verdict is Verdict.DIFFERENT
    assert f"{file} DIFFERENT" in report.headline
    assert report.problems[0].id == "compare/folder-files"
    assert says in report.problems[0].why


SAME = {
    "padding": ("tokenizer.json", TOKENIZER, words("[UNK]", "the", "quick", padding={"length": 3}, truncation=None)),
    "two forms of a token": ("special_tokens_map.json", '{"eos_token": {"content": "</s>"}}', '{"eos_token": "</s>"}'),
    "ends of lines": ("merges.txt", "a b\n", "a b\r\n"),
}


@pytest.mark.parametrize("name", SAME)
def test_a_file_in_another_form_is_equal(name: str, original: Path, tmp_path: Path) -> None:
    file, one, other = SAME[name]
    copy = folder(tmp_path / "copy")
    (original / file).write_text(one)
    (copy / file).write_bytes(other.encode())
    report = compared(original, copy)
    assert report.verdict is Verdict.DONE
    assert [one.verdict for one in report.part(FolderFiles).files] == ["equal", "equal"]


HEATED = (
    DECODER.replace("(int64[b,s] input_ids", "(float[1] heat, int64[b,s] input_ids")
    .replace("MatMul(flat, out)", "MatMul(flat, hot)")
    .replace("{ w =", "{ hot = Mul(out, heat) w =")
)
BAD: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no graph": (lambda path: (path / "model.onnx").unlink(), "compare/folder-layout", "there is no ONNX file"),
    "two graphs": (
        lambda path: (folder(path, name="a.onnx"), (path / "model.onnx").rename(path / "b.onnx")),
        "compare/folder-layout", "decoder_model.onnx with decoder_with_past_model.onnx",
    ),
    "no later calls": (
        lambda path: (
            folder(path, LATER_PARTS["decoder_model.onnx"], "decoder_model.onnx"), (path / "model.onnx").unlink(),
        ),
        "compare/folder-part", "lacks decoder_with_past_model.onnx",
    ),
    "no first call": (
        lambda path: (path / "model.onnx").rename(path / "decoder_with_past_model.onnx"),
        "compare/folder-part", "lacks decoder_model.onnx",
    ),
    "no graph of genai": (
        lambda path: (path / "genai_config.json").write_text('{"model": {"decoder": {"filename": "x.onnx"}}}'),
        "compare/folder-part", "lacks x.onnx",
    ),
    "genai without a model": (
        lambda path: (path / "genai_config.json").write_text("{}"), "compare/folder-config", "no table 'model'",
    ),
    "a damaged configuration": (
        lambda path: (path / "config.json").write_text('{"model_type": '), "compare/folder-config", "it is not JSON",
    ),
    "an odd configuration": (
        lambda path: (path / "config.json").write_text("[]"), "compare/folder-config", "it is no JSON object",
    ),
    "a damaged tokenizer": (
        lambda path: (path / "tokenizer.json").write_text("{"), "compare/folder-config", "tokenizer.json cannot be",
    ),
    "a graph that is none": (lambda path: (path / "model.onnx").write_text("hello"), "model/garbage", ""),
    "another model": (
        lambda path: folder(
            path, DECODER.replace("float[b,1,p,4]", "float[b,2,p,4]").replace("float[b,1,t,4]", "float[b,2,t,4]")
        ),
        "compare/folder-part", "has 2 heads of size 4, original has 1 of 4",
    ),
    "an input of its own": (
        lambda path: folder(path, HEATED),
        "compare/folder-part", "no input like heat",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_folder_is_a_problem(name: str, original: Path, tmp_path: Path) -> None:
    change, wanted, says = BAD[name]
    (original / "tokenizer.json").write_text(TOKENIZER)
    copy = folder(tmp_path / "copy")
    change(copy)
    refused(original, copy, wanted, says)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"per_layer": True}, "--per-layer"), ({"sizes": {"b": 1}}, "--dim"), ({"inputs": ["x.npz"]}, "--input"),
     ({"generate": False}, "--only-given"), ({"state": ["a=b"]}, "--state")],
)  # fmt: skip
def test_an_option_without_a_meaning_is_refused(options: dict[str, object], name: str, original: Path) -> None:
    refused(original, original, "compare/folder-option", f"{name} has no meaning", **options)


def test_the_original_has_to_fit(original: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    for name, text in LATER_PARTS.items():
        folder(two, text, name)
    refused(original / "model.onnx", two, "compare/folder-original", "compared with a folder")  # type: ignore[arg-type]
    plain = tmp_path / "plain"
    plain.mkdir()
    save(
        from_text('<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Neg(x) }'),
        plain / "model.onnx",
    )
    refused(plain, original, "compare/folder-original", "do not generate text")


def test_options_that_apply(original: Path, tmp_path: Path) -> None:
    copy = folder(tmp_path / "copy")
    report = compared(original, copy, steps=3, seed=2, runtime="reference", thorough=True)
    assert report.headline.endswith("equal in 1 graph and 6 tokens of 2 texts")
    assert compared(original, copy / "model.onnx").headline.startswith("original and model.onnx (one file): equal")


@pytest.mark.parametrize(
    ("name", "begin", "has_encoder", "shared"),
    [
        ("past_key_values.3.key", "past_key_values", False, "past_key_values.3.key"),
        ("past_key_values.3.value", "past_key_values", False, "past_key_values.3.value"),
        ("past_value_7", "past_key_values", False, "past_key_values.7.value"),
        ("present_key_self_0", "present", True, "present.0.decoder.key"),
        ("present.1.encoder.value", "present", True, "present.1.encoder.value"),
        ("past_key_cross_2", "past_key_values", True, "past_key_values.2.encoder.key"),
        ("attention_mask", "past_key_values", False, None),
        ("past_0", "past_key_values", False, None),
    ],
)
def test_names_of_caches(name: str, begin: str, has_encoder: bool, shared: str | None) -> None:
    assert cache_name(name, begin, has_encoder=has_encoder) == shared


def test_every_layout_says_what_it_expects(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        read(tmp_path)
    assert all(layout.expected in raised.value.problem.why for layout in LAYOUTS)
