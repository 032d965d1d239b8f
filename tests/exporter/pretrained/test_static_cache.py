"""A cache of fixed length, which `generation_config.json` asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.pretrained import generation_state
from onnxsmith.exporter.pretrained.static_cache import Fixed, fixed
from tests.exporter.pretrained.texts import TEXT

LENGTH = 24


def asks(folder: Path, **said: Any) -> None:
    (folder / "generation_config.json").write_text(json.dumps(said), encoding="utf-8")


@pytest.mark.usefixtures("compared_once")
def test_a_file_generates_with_a_cache_of_fixed_length(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**TEXT)).float().eval()
    model.save_pretrained(tmp_path)
    asks(tmp_path, cache_implementation="static", max_cache_len=LENGTH)
    file = tmp_path / "model.onnx"
    result = onnxsmith.export(str(tmp_path), task="text-generation-with-past", output=file)
    assert result.ok, result.report.headline
    assert f"holds {LENGTH} tokens at most" in result.report.headline
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    ports = {port.name: port for port in session.get_inputs()}
    assert ports["past_key_values.0.key"].shape == ["batch_size", 1, LENGTH, 8]
    text = torch.randint(3, 40, (2, 9))
    feeds: dict[str, Any] = {"attention_mask": np.ones((2, LENGTH), np.int64)}
    for name in ("key", "value"):
        feeds[f"past_key_values.0.{name}"] = np.zeros((2, 1, LENGTH, 8), np.float32)
    feeds["past_key_values.0.cumulative_length"] = np.array(0)
    with torch.no_grad():
        wanted = model(input_ids=text).logits.numpy()
    names = [port.name for port in session.get_outputs()]
    for start, stop in ((0, 4), *((at, at + 1) for at in range(4, 9))):
        found = dict(zip(names, session.run(None, feeds | {"input_ids": text[:, start:stop].numpy()}), strict=True))
        assert np.allclose(found["logits"], wanted[:, start:stop], atol=1e-5)
        feeds |= {name.replace("present", "past_key_values"): value for name, value in found.items() if "pres" in name}
    assert feeds["past_key_values.0.cumulative_length"] == 9


def test_a_count_outside_the_tensors_is_refused() -> None:
    config = transformers.Gemma2Config(**TEXT, head_dim=8, sliding_window=4, layer_types=["sliding_attention"])
    module = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    kwargs = {"input_ids": torch.randint(3, 40, (2, 8)), "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    cache = Fixed(LENGTH, lambda: transformers.StaticCache(config=config, max_cache_len=LENGTH))
    with pytest.raises(OnnxsmithError) as caught:
        generation_state.step(module, kwargs, {}, 40, {}, fixed=cache)
    assert caught.value.problem.id == "export/no-state"
    assert "remove cache_implementation" in caught.value.problem.fix


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ({}, None),
        ({"cache_implementation": "dynamic"}, None),
        ({"cache_implementation": "static"}, 64),
        ({"cache_implementation": "static", "max_length": 32}, 32),
        ({"cache_implementation": "offloaded_static", "max_cache_len": 24, "max_length": 32}, 24),
    ],
)
def test_the_length_is_that_of_the_folder(tmp_path: Path, said: dict[str, Any], length: int | None) -> None:
    asks(tmp_path, **said)
    found = fixed(transformers.LlamaConfig(**TEXT), tmp_path)
    assert (found and found.length) == length


@pytest.mark.parametrize(
    ("config", "length"), [(transformers.LlamaConfig(**TEXT), 8), (transformers.BartConfig(vocab_size=40), 64)]
)
def test_a_cache_that_is_too_short_or_has_an_encoder_is_refused(tmp_path: Path, config: Any, length: int) -> None:
    asks(tmp_path, cache_implementation="static", max_cache_len=length)
    with pytest.raises(OnnxsmithError) as caught:
        fixed(config, tmp_path)
    assert caught.value.problem.id == "export/no-state"
    assert "remove cache_implementation" in caught.value.problem.fix
