"""Each kind of task: a tiny model in a folder, with what its processor saved beside it, and what its file takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import transformers

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.pretrained import example_makers

BATCH = "batch_size"
VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "image_size": 32,
    "patch_size": 8,
}
SEQUENCE = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
TEXT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 32,
}
WAVE = {
    **TEXT,
    "conv_dim": (8, 8),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
WHISPER = {**SEQUENCE, "num_mel_bins": 8, "max_source_positions": 32, "max_target_positions": 64}


def exported(folder: Path, task: str, config: Any, processor: Any = None) -> tuple[Any, Any]:
    """What the file takes and gives: name → shape."""
    config.save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    result = onnxsmith.export(str(folder), task=task, simplify=False)
    assert result.ok
    part = result.report.part(Capture)
    return {port.name: list(port.shape) for port in part.inputs}, {port.name: list(port.shape) for port in part.outputs}


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    ("task", "output"), [("image-classification", "logits"), ("image-feature-extraction", "last_hidden_state")]
)
def test_images_have_the_size_that_the_processor_gives_them(tmp_path: Path, task: str, output: str) -> None:
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    inputs, outputs = exported(tmp_path, task, transformers.ViTConfig(**VIT), processor)
    assert inputs == {"pixel_values": [BATCH, 3, 32, 32]}
    assert output in outputs


def test_images_whose_shape_the_processor_keeps_have_any_height_and_width(tmp_path: Path) -> None:
    processor = transformers.DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    inputs, _ = exported(tmp_path, "image-classification", config, processor)
    assert inputs == {"pixel_values": [BATCH, 3, "height", "width"]}


@pytest.mark.usefixtures("compared_once")
def test_objects_in_an_image_that_is_not_square(tmp_path: Path) -> None:
    processor = transformers.YolosImageProcessor(size={"height": 32, "width": 48})
    config = transformers.YolosConfig(**{**VIT, "image_size": [32, 48]}, num_detection_tokens=5)
    inputs, outputs = exported(tmp_path, "object-detection", config, processor)
    assert inputs == {"pixel_values": [BATCH, 3, 32, 48]}
    assert outputs["pred_boxes"] == [BATCH, 5, 4]


@pytest.mark.usefixtures("compared_once")
def test_a_video_is_as_many_images_as_the_model_wants(tmp_path: Path) -> None:
    processor = transformers.VideoMAEImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    config = transformers.VideoMAEConfig(**{**VIT, "image_size": 16}, num_frames=4)
    inputs, _ = exported(tmp_path, "video-classification", config, processor)
    assert inputs == {"pixel_values": [BATCH, 4, 3, 16, 16]}


def test_a_wave_has_any_length(tmp_path: Path) -> None:
    config = transformers.Wav2Vec2Config(**WAVE)
    inputs, outputs = exported(
        tmp_path, "automatic-speech-recognition", config, transformers.Wav2Vec2FeatureExtractor()
    )
    assert inputs == {"input_values": [BATCH, "audio_sequence_length"]}
    assert outputs["logits"][2] == 40


@pytest.mark.usefixtures("compared_once")
def test_a_spectrogram_of_one_length(tmp_path: Path) -> None:
    config = transformers.ASTConfig(**{**VIT, "patch_size": 4}, num_mel_bins=16, max_length=24)
    processor = transformers.ASTFeatureExtractor(num_mel_bins=16, max_length=24)
    inputs, _ = exported(tmp_path, "audio-classification", config, processor)
    assert inputs == {"input_values": [BATCH, 24, 16]}


@pytest.mark.usefixtures("compared_once")
def test_features_with_as_many_bins_as_the_model_reads(tmp_path: Path) -> None:
    config = transformers.Speech2TextConfig(
        **SEQUENCE, input_feat_per_channel=8, conv_channels=16, num_conv_layers=1, conv_kernel_sizes=(3,)
    )
    inputs, _ = exported(tmp_path, "automatic-speech-recognition", config)
    assert inputs["input_features"] == [BATCH, "audio_sequence_length", 8]


@pytest.mark.usefixtures("compared_once")
def test_speech_to_text_step_by_step(tmp_path: Path) -> None:
    inputs, outputs = exported(
        tmp_path, "automatic-speech-recognition-with-past", transformers.WhisperConfig(**WHISPER)
    )
    assert "input_features" not in inputs
    assert inputs["encoder_outputs.0"] == [BATCH, "encoder_sequence_length", 16]
    assert inputs["past_key_values.self_attention_cache.0.key"] == [BATCH, 2, "past_sequence_length", 8]
    assert outputs["logits"] == [BATCH, "decoder_sequence_length", 40]


@pytest.mark.usefixtures("compared_once")
def test_text_to_text_step_by_step(tmp_path: Path) -> None:
    inputs, outputs = exported(tmp_path, "text2text-generation-with-past", transformers.BartConfig(**SEQUENCE))
    assert inputs["attention_mask"] == [BATCH, "encoder_sequence_length"]
    assert inputs["past_key_values.cross_attention_cache.0.value"] == [BATCH, 2, "encoder_sequence_length", 8]
    both = "past_sequence_length + decoder_sequence_length"
    assert outputs["present.self_attention_cache.0.value"] == [BATCH, 2, both, 8]


@pytest.mark.usefixtures("compared_once")
def test_texts_and_images_that_are_compared_come_in_any_numbers(tmp_path: Path) -> None:
    config = transformers.CLIPConfig(
        text_config={**TEXT, "bos_token_id": 1, "eos_token_id": 2}, vision_config=VIT, projection_dim=8
    )
    inputs, outputs = exported(tmp_path, "zero-shot-image-classification", config)
    assert inputs["input_ids"] == ["text_batch_size", "sequence_length"]
    assert inputs["pixel_values"] == ["image_batch_size", 3, 32, 32]
    assert outputs["logits_per_image"] == ["image_batch_size", "text_batch_size"]


@pytest.mark.usefixtures("compared_once")
def test_words_with_places_on_a_page(tmp_path: Path) -> None:
    config = transformers.LayoutLMConfig(**TEXT)
    inputs, outputs = exported(tmp_path, "document-question-answering", config)
    assert inputs["bbox"] == [BATCH, "sequence_length", 4]
    assert set(outputs) == {"start_logits", "end_logits"}


def test_a_default_axis_that_the_model_fixes_is_left_out_and_named(tmp_path: Path) -> None:
    config = transformers.SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=8, descriptor_decoder_dim=8
    )
    config.save_pretrained(tmp_path)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path)
    result = onnxsmith.export(str(tmp_path), task="keypoint-detection", simplify=False, verify=False)
    assert "batch_size is fixed to 1" in result.report.headline
    assert [list(port.shape) for port in result.report.part(Capture).inputs] == [[1, 3, 32, 32]]


@pytest.mark.usefixtures("compared_once")
def test_several_answers_to_choose_from(tmp_path: Path) -> None:
    inputs, outputs = exported(tmp_path, "multiple-choice", transformers.BertConfig(**TEXT))
    assert inputs["input_ids"] == [BATCH, "num_choices", "sequence_length"]
    assert outputs == {"logits": [BATCH, "num_choices"]}


@pytest.mark.usefixtures("compared_once")
def test_texts_that_are_compared_with_sounds(tmp_path: Path) -> None:
    audio = {
        "num_mel_bins": 8,
        "spec_size": 16,
        "window_size": 2,
        "patch_embeds_hidden_size": 8,
        "hidden_size": 8,
        "depths": [1],
        "num_attention_heads": [2],
        "num_hidden_layers": 1,
        "projection_dim": 8,
    }
    config = transformers.ClapConfig(text_config={**TEXT, "projection_dim": 8}, audio_config=audio, projection_dim=8)
    inputs, outputs = exported(tmp_path, "zero-shot-audio-classification", config)
    assert inputs["input_features"] == ["audio_batch_size", 1, 32, 8]
    assert outputs["logits_per_audio"] == ["audio_batch_size", "text_batch_size"]


@pytest.mark.usefixtures("compared_once")
def test_a_time_series_whose_values_are_drawn(tmp_path: Path) -> None:
    config = transformers.TimeSeriesTransformerConfig(
        prediction_length=4,
        context_length=12,
        lags_sequence=[1, 2, 3],
        d_model=16,
        num_time_features=1,
        num_static_categorical_features=1,
        cardinality=[5],
        embedding_dimension=[2],
        encoder_layers=1,
        decoder_layers=1,
    )
    config.save_pretrained(tmp_path)
    result = onnxsmith.export(str(tmp_path), task="time-series-forecasting", simplify=False)
    assert result.ok
    assert "draws no values" in result.report.headline
    part = result.report.part(Capture)
    inputs = {port.name: list(port.shape) for port in part.inputs}
    assert inputs["past_values"] == [BATCH, 15]
    assert inputs["static_categorical_features"] == [BATCH, 1]
    assert [BATCH, 4] in [list(port.shape) for port in part.outputs if "params" in port.name]


@pytest.mark.parametrize(
    "config",
    [
        transformers.SamConfig(vision_config={"image_size": 64}, prompt_encoder_config={"image_size": 64}),
        transformers.Sam2Config(vision_config={"backbone_config": {"model_type": "sam2_hiera_det_model",
                                "image_size": [64, 64]}}),
        transformers.EdgeTamConfig(vision_config={"backbone_config": {"model_type": "resnet"}},
                                   prompt_encoder_config={"image_size": 64}),
        transformers.VitPoseConfig(backbone_config={"model_type": "vitpose_backbone", "image_size": [64, 64]}),
    ],
)  # fmt: skip
def test_an_image_has_the_size_that_a_part_of_the_configuration_says(tmp_path: Path, config: Any) -> None:
    assert example_makers.MAKERS["pixel_values"](config, tmp_path)[0].shape == (2, 3, 64, 64)
