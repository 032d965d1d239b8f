"""Python code beside a saved model runs only if the user says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import transformers

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.pretrained import tasks
from tests.test_circumstances import ENVIRONMENT

CONFIGURATION = """
from transformers import PreTrainedConfig

open({marker!r}, "a").write("configuration\\n")

class OwnConfig(PreTrainedConfig):
    model_type = "own"
    vocab_size = 30
"""
MODEL = """
import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput

from .configuration_own import OwnConfig

open({marker!r}, "a").write("model\\n")

class OwnMasked(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.embedding = torch.nn.Embedding(config.vocab_size, 8)
        self.head = torch.nn.Linear(8, config.vocab_size)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        return MaskedLMOutput(logits=self.head(torch.tanh(self.embedding(input_ids)) * attention_mask[..., None]))
"""
CONFIG = {
    "model_type": "own",
    "vocab_size": 30,
    "architectures": ["OwnMasked"],
    "auto_map": {"AutoConfig": "configuration_own.OwnConfig", "AutoModelForMaskedLM": "modeling_own.OwnMasked"},
}
BERT = {
    **CONFIG, "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8,
}  # fmt: skip
FILES = "configuration_own.py, modeling_own.py"


def folder_of(place: Path, config: dict[str, object]) -> Path:
    folder = place / "own"
    folder.mkdir()
    marker = str(place / "marker")
    (folder / "configuration_own.py").write_text(CONFIGURATION.format(marker=marker))
    (folder / "modeling_own.py").write_text(MODEL.format(marker=marker))
    for name in ("config.json", "tokenizer_config.json", "preprocessor_config.json"):
        (folder / name).write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("task", ["fill-mask", "auto"])
@pytest.mark.parametrize("config", [CONFIG, BERT], ids=["unknown", "known by the name of its kind"])
def test_without_the_option_it_is_refused(tmp_path: Path, config: dict[str, object], task: str) -> None:
    folder = folder_of(tmp_path, config)
    if (config, task) == (BERT, "fill-mask"):  # transformers has a class for it
        result = onnxsmith.export(str(folder), task=task, verify=False, strategy="torch-export")
        assert f"Python code that the model names was not run: {FILES}" in result.report.part(Capture).notes
    else:
        with pytest.raises(OnnxsmithError) as caught:
            onnxsmith.export(str(folder), task=task)
        assert caught.value.problem.id == "export/own-code"
        assert FILES in caught.value.problem.why
        assert caught.value.problem.fix.endswith("add trust_remote_code=True")
    assert not (tmp_path / "marker").exists()


def exported(place: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The command with `y` on standard input, in a process of its own: transformers copies the code into a cache."""
    words = ["export", "own", "--task", "fill-mask", "-o", "own.onnx", "--strategy", "torch-export", *more]
    return subprocess.run(
        [sys.executable, "-m", "onnxsmith", *words],
        input="y\n" * 9,
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={**ENVIRONMENT, "HF_HOME": str(place / "cache"), "ONNXSMITH_PROGRESS": "none"},
    )


def test_no_answer_on_standard_input_starts_the_code(tmp_path: Path) -> None:
    """The fix is not tried either, as other fixes are."""
    folder_of(tmp_path, CONFIG)
    done = exported(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "export/own-code" in done.stderr
    assert "fix (not tried)" in done.stderr
    assert "y/N" not in done.stderr
    assert not (tmp_path / "marker").exists()


def test_with_the_option_it_runs_and_the_report_says_so(tmp_path: Path) -> None:
    folder_of(tmp_path, CONFIG)
    done = exported(tmp_path, "--trust-remote-code", "--record", "record.json", "--json")
    assert done.returncode == 0, done.stderr
    assert set((tmp_path / "marker").read_text().split()) == {"configuration", "model"}
    report = json.loads(done.stdout)
    assert report["headline"].endswith(f"; made with Python code that the model names: {FILES}")
    assert "--trust-remote-code" in (tmp_path / "record.json").read_text()


def test_auto_finds_the_class_that_the_model_names() -> None:
    config = transformers.BertConfig(architectures=["OwnMasked"])
    found = tasks.chosen(transformers, config, "auto", CONFIG["auto_map"])  # type: ignore[arg-type]
    assert found == ("fill-mask", transformers.AutoModelForMaskedLM)


def test_code_of_another_repository_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {**CONFIG, "auto_map": {"AutoConfig": "owner/name--configuration_x.XConfig"}})
    for file in folder.glob("*.py"):
        file.unlink()
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(str(folder), task="fill-mask")
    assert "owner/name--configuration_x.XConfig" in caught.value.problem.why


def test_a_factory_takes_no_such_option() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export("net.py:build", trust_remote_code=True)
    assert caught.value.problem.id == "export/arguments"
