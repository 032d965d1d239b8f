"""Models of transformers from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.factory import broken_package

TINY = {
    "vocab_size": 30,
    "n_embd": 8,
    "n_layer": 1,
    "n_head": 2,
    "n_positions": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(str(tmp_path / "no"), task="fill-mask")
    assert caught.value.problem.id == "export/transformers-folder"


@pytest.mark.usefixtures("compared_once")
def test_a_configuration_alone_gives_random_weights_and_says_so(tmp_path: Path) -> None:
    transformers.GPT2Config(**TINY).save_pretrained(tmp_path)
    result = onnxsmith.export(str(tmp_path), task="text-generation-with-past", simplify=False)
    assert result.ok
    part = result.report.part(Capture)
    assert any("random" in note for note in part.notes)
    assert {port.name for port in part.inputs} == {
        "input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value",
    }  # fmt: skip
    assert [port.name for port in part.outputs] == ["logits", "present.0.key", "present.0.value"]


@pytest.mark.parametrize("task", ["image-classification", "no-such-task"])
def test_a_task_that_it_is_not_made_for(tmp_path: Path, task: str) -> None:
    transformers.GPT2Config(**TINY).save_pretrained(tmp_path)
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(str(tmp_path), task=task)
    assert caught.value.problem.id == "export/task"
    assert "text-generation" in caught.value.problem.fix


def test_a_package_that_does_not_fit_is_named() -> None:
    error = ModuleNotFoundError("Could not import module 'BertForSequenceClassification'.")
    error.__cause__ = RuntimeError("operator torchvision::nms does not exist")
    found = broken_package(error)
    assert found is not None
    assert found.problem.id == "export/transformers-import"
    assert "torchvision::nms" in found.problem.why


@pytest.mark.usefixtures("compared_once")
def test_auto_keeps_the_axes_of_the_task(tmp_path: Path) -> None:
    transformers.GPT2Config(**TINY).save_pretrained(tmp_path)
    result = onnxsmith.export(str(tmp_path), task="feature-extraction", dynamic="auto", simplify=False)
    shapes = {port.name: port.shape for port in result.report.part(Capture).inputs}
    assert shapes == dict.fromkeys(("input_ids", "attention_mask"), ("batch_size", "sequence_length"))
