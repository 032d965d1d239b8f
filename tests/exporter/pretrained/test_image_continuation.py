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
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.pretrained import generation_state, pretrained_folder
from onnxsmith.exporter.pretrained.generation_calls import untouched
from onnxsmith.exporter.pretrained.pretrained_examples import placed
from tests.exporter.pretrained.texts import TEXT

TASK, IMAGE = "image-text-to-text-with-past", 39
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


@pytest.mark.usefixtures("compared_once")
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


def asked(model: Any) -> generation_state.Step:
    text = {"input_ids": torch.randint(3, 39, (2, 8)), "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    first = {**text, "pixel_values": torch.randn(2, 3, 4, 4)}
    return generation_state.step(model, text, {}, 39, {}, first=first)


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


EYES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20, "patch_size": 4}
ROTARY = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
IDEFICS = transformers.Idefics3Config(
    vision_config={**EYES, "image_size": 16},
    text_config={"model_type": "llama", **TEXT},
    image_token_id=IMAGE,
    scale_factor=2,
)
QWEN = transformers.Qwen2VLConfig(
    vision_config={"depth": 1, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 4},
    text_config={**TEXT, "rope_parameters": ROTARY},
    image_token_id=IMAGE,
    video_token_id=38,
    vision_start_token_id=37,
    vision_end_token_id=36,
)


@pytest.mark.parametrize(("config", "images"), [(IDEFICS, [2, 1, 3, 16, 16]), (QWEN, [64, 96])])
def test_images_have_the_layout_that_the_processor_gives_them(tmp_path: Path, config: Any, images: list[int]) -> None:
    config.save_pretrained(tmp_path)
    model = pretrained_folder.load(str(tmp_path), "image-text-to-text").model
    assert list(model.kwargs["pixel_values"].shape) == images
    with torch.no_grad():
        assert model.module(**model.kwargs).logits.shape[0] == 2


def test_positions_that_an_image_takes_are_no_state(tmp_path: Path) -> None:
    QWEN.save_pretrained(tmp_path)
    with pytest.raises(OnnxsmithError) as caught:
        pretrained_folder.load(str(tmp_path), TASK)
    assert caught.value.problem.id == "export/no-state"
    assert "after an image" in caught.value.problem.what


def test_images_of_an_unknown_kind_are_refused_with_what_the_model_said() -> None:
    class Other(Cached):
        def get_image_features(self, pixel_values: torch.Tensor) -> torch.Tensor:
            raise ValueError("five axes")

    kwargs = {"input_ids": torch.ones(1, 3, dtype=torch.int64), "pixel_values": torch.ones(1, 3, 4, 4)}
    model = Other(0)
    with pytest.raises(OnnxsmithError) as caught:
        placed(model, model.config, kwargs)
    assert caught.value.problem.id == "export/no-inputs"
    assert "five axes" in caught.value.problem.why
