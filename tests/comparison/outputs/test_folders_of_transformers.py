"""`compare MODEL FOLDER`: graphs of other tools against a model of transformers, with planted faults."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.folders import FolderParts, GeneratedTokens
from onnxsmith.base.report.verdict import Verdict
from tests.comparison.outputs import graph_folders as made

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

Folders = tuple[Path, Path]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("llama")
    model = made.original("llama", root / "model")
    made.decoder(model, root / "graphs" / "model.onnx", positions=True)
    shutil.copy(root / "model" / "config.json", root / "graphs")
    made.genai_config(model, root / "graphs")
    return root / "model", root / "graphs"


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("t5")
    made.with_encoder(made.original("t5", root / "model"), root / "graphs")
    return root / "model", root / "graphs"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("bert")
    model = made.original("bert", root / "model")
    inputs = {"input_ids": made.ids(), "attention_mask": torch.ones(2, 3, dtype=torch.int64)}
    inputs["token_type_ids"] = torch.zeros(2, 3, dtype=torch.int64)
    made.single(model, root / "graphs", inputs, ["last_hidden_state"])
    return root / "model", root / "graphs"


def changed(graphs: Path, to: Path, file: str, name: str, op: str, value: int, *, first: bool = False) -> Path:
    """Returns a copy of a folder in which an operator is put behind an input of a graph."""
    shutil.copytree(graphs, to)
    model = onnx.load(to / file)
    for node in model.graph.node:
        node.input[:] = ["wrong" if one == name else one for one in node.input]
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.int64), "constant"))
    operands = ["constant", name] if first else [name, "constant"]
    model.graph.node.insert(0, helper.make_node(op, operands, ["wrong"]))
    onnx.save(model, to / file)
    return to


def swapped(graphs: Path, to: Path, file: str, one: str, other: str) -> Path:
    """Returns a copy of a folder in which a graph reads two inputs the wrong way round."""
    shutil.copytree(graphs, to)
    model, names = onnx.load(to / file), {one: other, other: one}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    onnx.save(model, to / file)
    return to


def compared(original: Path, graphs: Path) -> Report:
    return onnxsmith.compare(original, graphs).report


def test_a_decoder(llama: Folders, tmp_path: Path) -> None:
    report = compared(*llama)
    assert report.verdict is Verdict.DONE
    assert report.headline == (
        "model in PyTorch, eager and graphs (onnxruntime-genai): equal in 1 graph and 16 tokens of 2 texts"
    )
    assert all(dict(report.part(GeneratedTokens).faults).values())
    assert len(report.part(GeneratedTokens).faults) == 4
    later, first = "step 2 of 8, model.onnx", "the first call, model.onnx"
    key, other, value = "past_key_values.0.key", "past_key_values.1.key", "past_key_values.0.value"
    graphs = llama[1]
    for wrong, says in (
        (swapped(graphs, tmp_path / "layers", "model.onnx", key, other), later),
        (swapped(graphs, tmp_path / "kinds", "model.onnx", key, value), later),
        (changed(graphs, tmp_path / "mask", "model.onnx", "attention_mask", "Sub", 1, first=True), first),
        (changed(graphs, tmp_path / "no-mask", "model.onnx", "attention_mask", "Max", 1), first),
        (changed(graphs, tmp_path / "positions", "model.onnx", "position_ids", "Add", 1), first),
        (changed(graphs, tmp_path / "late", "model.onnx", "position_ids", "Min", 5), later),
    ):
        report = compared(llama[0], wrong)
        assert report.verdict is Verdict.DIFFERENT
        assert f"DIFFERENT, first in {says}" in report.headline


def test_weights_of_another_model(llama: Folders, tmp_path: Path) -> None:
    made.original("llama", tmp_path / "other", seed=1)
    report = compared(tmp_path / "other", llama[1])
    assert report.verdict is Verdict.DIFFERENT
    assert "first in the first call, model.onnx, output present.0.key" in report.headline


def test_a_model_of_another_kind(llama: Folders, bert: Folders, t5: Folders) -> None:
    for original, graphs, says in (
        (bert[0], llama[1], "it returns no caches"),
        (t5[0], llama[1], "is no model that generates text by itself"),
        (llama[0], t5[1], "is no model that generates text after an encoder"),
    ):
        with pytest.raises(OnnxsmithError) as raised:
            compared(original, graphs)
        assert raised.value.problem.id == "compare/folder-original"
        assert says in str(raised.value.problem)


def test_an_encoder_and_two_decoders(t5: Folders, tmp_path: Path) -> None:
    report = compared(*t5)
    assert report.verdict is Verdict.DONE
    roles = [(one.role, one.calls) for one in report.part(FolderParts).parts]
    assert roles == [("encoder", 1), ("first call", 1), ("later calls", 7)]
    later = "decoder_with_past_model.onnx"
    cross = [f"past_key_values.{layer}.encoder.key" for layer in (0, 1)]
    for wrong, says in (
        (swapped(t5[1], tmp_path / "layers", later, *cross), f"step 2 of 8, {later}"),
        (changed(t5[1], tmp_path / "mask", "encoder_model.onnx", "attention_mask", "Sub", 1, first=True),
         "the first call, encoder_model.onnx, output last_hidden_state"),
        (changed(t5[1], tmp_path / "seen", later, "encoder_attention_mask", "Max", 1), f"step 2 of 8, {later}"),
    ):  # fmt: skip
        report = compared(t5[0], wrong)
        assert report.verdict is Verdict.DIFFERENT
        assert f"first in {says}" in report.headline
    (tmp_path / "mask" / "encoder_model.onnx").unlink()
    with pytest.raises(OnnxsmithError, match=r"lacks encoder_model\.onnx"):
        compared(t5[0], tmp_path / "mask")


def test_one_graph(bert: Folders, tmp_path: Path) -> None:
    assert compared(*bert).verdict is Verdict.DONE
    for at, (name, op, value, first) in enumerate(
        [("attention_mask", "Sub", 1, True), ("attention_mask", "Max", 1, False), ("token_type_ids", "Mul", 0, False)]
    ):
        wrong = changed(bert[1], tmp_path / str(at), "model.onnx", name, op, value, first=first)
        assert compared(bert[0], wrong).verdict is Verdict.DIFFERENT
