"""The table of tasks, compared with the tasks of transformers' own pipelines; the class that `auto` uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import transformers

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.pretrained import tasks

PAGE = Path(__file__).parents[3] / "docs" / "pretrained.md"
PIPELINES: dict[str, Any] = transformers.pipelines.SUPPORTED_TASKS


@pytest.mark.parametrize("task", sorted(PIPELINES))
def test_each_task_of_pipeline_is_supported_or_refused_with_a_reason(task: str) -> None:
    if task in tasks.UNSUPPORTED:
        assert task not in tasks.supported()
        return
    ours = {f"AutoModelFor{name}" if name else "AutoModel" for name in tasks.supported()[task]}
    assert ours & {kind.__name__ for kind in PIPELINES[task]["pt"]}


@pytest.mark.parametrize("task", sorted(tasks.UNSUPPORTED))
def test_a_task_that_is_not_supported_says_why(task: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        tasks.chosen(transformers, transformers.GPT2Config(), task)
    assert caught.value.problem.id == "export/task"
    assert caught.value.problem.why == tasks.UNSUPPORTED[task]


def test_each_auto_class_is_there() -> None:
    for names in tasks.supported().values():
        for name in names:
            assert hasattr(transformers, f"AutoModelFor{name}" if name else "AutoModel"), name


def test_the_page_lists_every_task_with_its_classes() -> None:
    listed: dict[str, tuple[str, ...]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 2:
            continue
        names = tuple(name for name in cells[1].split(", ") if name != "AutoModel") or ("",)
        for task in re.findall("`([a-z0-9-]+)`", cells[0]):
            if task != tasks.PAST:
                listed[task] = names
            else:
                listed |= {f"{one}{task}": names for one in re.findall("`([a-z0-9-]+)`,", cells[0])}
    speech = f"automatic-speech-recognition{tasks.PAST}"
    assert listed.pop(speech)[1:] == tasks.supported()[speech]
    assert listed == {task: names for task, names in tasks.supported().items() if task != speech}
    assert all(f"`{task}`" in PAGE.read_text(encoding="utf-8") for task in tasks.UNSUPPORTED)


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertForMaskedLM", "fill-mask"),
        ("BertForMultipleChoice", "multiple-choice"),
        ("BertModel", "feature-extraction"),
        ("BertForPreTraining", "BertForPreTraining"),
    ],
)
def test_auto_is_the_class_that_was_saved(architecture: str, task: str) -> None:
    config = transformers.BertConfig(architectures=[architecture])
    assert tasks.chosen(transformers, config, "auto") == (task, getattr(transformers, architecture))


@pytest.mark.parametrize(
    "kind", ["Informer", "Autoformer", "TimeSeriesTransformer", "PatchTST", "PatchTSMixer", "TimesFm"]
)
def test_each_kind_of_time_series_has_a_class(kind: str) -> None:
    task = "time-series-forecasting"
    config = getattr(transformers, f"{kind}Config")(prediction_length=4)
    found, made = tasks.chosen(transformers, config, task)
    assert found == task
    assert made.__name__ == (f"{kind}ForPrediction" if kind != "TimesFm" else "AutoModelForTimeSeriesPrediction")


def test_auto_knows_the_task_of_a_class_without_an_auto_class() -> None:
    config = transformers.InformerConfig(prediction_length=4, architectures=["InformerForPrediction"])
    assert tasks.chosen(transformers, config, "auto") == ("time-series-forecasting", transformers.InformerForPrediction)


def test_sounds_are_classified_by_models_of_sounds_and_texts_only() -> None:
    task = "zero-shot-audio-classification"
    assert tasks.chosen(transformers, transformers.ClapConfig(), task) == (task, transformers.AutoModel)
    with pytest.raises(OnnxsmithError) as caught:
        tasks.chosen(transformers, transformers.BertConfig(), task)
    assert task not in caught.value.problem.fix


@pytest.mark.parametrize(("architectures", "named"), [(["NetOfMine"], "'NetOfMine'"), (None, "names no class")])
def test_auto_refuses_a_class_that_transformers_lacks(architectures: list[str] | None, named: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        tasks.chosen(transformers, transformers.BertConfig(architectures=architectures), "auto")
    assert caught.value.problem.id == "export/task"
    assert named in caught.value.problem.what
    assert "fill-mask" in caught.value.problem.fix
