"""A text that goes on after an image: the state of the call with the image, and what a model keeps beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import onnxsmith
from onnxsmith.exporter.pretrained import states
from onnxsmith.exporter.pretrained.asking import untouched
from onnxsmith.problem import OnnxsmithError

TASK, IMAGE = "image-text-to-text-with-past", 39
TEXT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
VISION = {
    "model_type": "clip_vision_model",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "image_size": 16,
    "patch_size": 8,
    "projection_dim": 8,
}


def test_a_file_goes_on_after_an_image_as_the_model_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    text = {"model_type": "llama", **TEXT}
    config = transformers.LlavaConfig(vision_config=VISION, text_config=text, image_token_id=IMAGE)
    model = transformers.AutoModelForImageTextToText.from_config(config).float().eval()
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.onnx"
    result = onnxsmith.export(str(tmp_path), task=TASK, output=file)
    assert result.ok, result.report.headline
    assert "reads no image" in result.report.headline
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    assert "pixel_values" not in {port.name for port in session.get_inputs()}
    ids = torch.tensor([[IMAGE] * 4 + [5, 6, 7]])
    with torch.no_grad():
        begun = model(input_ids=ids, pixel_values=torch.randn(1, 3, 16, 16), use_cache=True)
        kept = [(layer.keys.clone(), layer.values.clone()) for layer in begun.cache.layers]
        wanted = model(input_ids=torch.tensor([[8]]), cache=begun.cache, use_cache=True).logits
    feeds = {"input_ids": np.array([[8]]), "attention_mask": np.ones((1, 8), np.int64)}
    for at, (keys, values) in enumerate(kept):
        feeds |= {f"past_key_values.{at}.key": keys.numpy(), f"past_key_values.{at}.value": values.numpy()}
    assert np.allclose(session.run(["logits"], feeds)[0], wanted.numpy(), atol=1e-5)


class Cached(torch.nn.Module):
    """Adds up its tokens, with a place for each; an image takes `places` of them, which is kept in an attribute, or in
    the state if `places` is 0."""

    main_input_name = "input_ids"

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places, self.shift = places, 0
        self.config = transformers.LlavaConfig(image_token_id=IMAGE)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        pixel_values: torch.Tensor | None = None,
        cache: torch.Tensor | None = None,
        use_cache: bool = False,
    ) -> dict[str, torch.Tensor]:
        rows = input_ids.float()[:, None, :, None]
        if pixel_values is not None:
            rows = rows + pixel_values.mean()
            self.shift = self.places
        seen = rows if cache is None else torch.cat([cache, rows], 2)
        place = torch.arange(seen.shape[2]) + 1.0 + self.shift
        total = (seen * place[:, None]).cumsum(2)[:, 0, -rows.shape[2] :]
        return {"logits": total, "cache": seen}


def asked(model: Any) -> states.Step:
    text = {"input_ids": torch.randint(3, 39, (2, 8)), "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    first = {**text, "pixel_values": torch.randn(2, 3, 4, 4)}
    return states.step(model, text, {}, 39, {}, first=first)


def test_a_step_after_an_image_is_among_the_arguments_of_the_comparison() -> None:
    found = asked(Cached(0))
    assert found.more[-1]["attention_mask"].shape == (2, 9)
    assert found.more[-1]["cache"].shape == (2, 1, 8, 1)


def test_what_an_image_leaves_in_an_attribute_is_refused() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        asked(Cached(5))
    assert caught.value.problem.id == "export/no-state"
    assert "after an image" in caught.value.problem.what


def test_calls_leave_no_attribute_behind() -> None:
    model = Cached(5)
    with untouched(model):
        model(torch.ones(1, 3), pixel_values=torch.ones(1, 3, 4, 4))
        assert model.shift == 5
    assert model.shift == 0
