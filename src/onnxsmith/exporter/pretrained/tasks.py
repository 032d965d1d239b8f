"""The names of tasks, and the classes of transformers for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.transformers import classes
from onnxsmith.base.words import in_place_of

PAST = "-with-past"
"""Ends the names of tasks whose model takes and returns a cache of keys and values."""
STATELESS = f"export the task without {PAST}: that file takes the whole text in each call"
"""Is the fix for a model without a state that a file could take."""

_CLASSES = {
    "audio-classification": ("AudioClassification",),
    "audio-frame-classification": ("AudioFrameClassification",),
    "audio-xvector": ("AudioXVector",),
    "automatic-speech-recognition": ("CTC", "SpeechSeq2Seq"),
    f"automatic-speech-recognition{PAST}": ("SpeechSeq2Seq",),
    "depth-estimation": ("DepthEstimation",),
    "document-question-answering": ("DocumentQuestionAnswering",),
    "feature-extraction": ("",),
    "fill-mask": ("MaskedLM",),
    "image-classification": ("ImageClassification",),
    "image-feature-extraction": ("",),
    "image-segmentation": ("ImageSegmentation", "SemanticSegmentation", "UniversalSegmentation"),
    "image-text-to-text": ("ImageTextToText",),
    f"image-text-to-text{PAST}": ("ImageTextToText",),
    "image-to-image": ("ImageToImage",),
    "keypoint-detection": ("KeypointDetection", "PoseEstimation"),
    "keypoint-matching": ("KeypointMatching",),
    "mask-generation": ("MaskGeneration",),
    "masked-im": ("MaskedImageModeling",),
    "multiple-choice": ("MultipleChoice",),
    "next-sentence-prediction": ("NextSentencePrediction",),
    "object-detection": ("ObjectDetection",),
    "question-answering": ("QuestionAnswering",),
    "semantic-segmentation": ("SemanticSegmentation",),
    "sentence-similarity": ("",),
    "table-question-answering": ("TableQuestionAnswering",),
    "text-classification": ("SequenceClassification",),
    "text-generation": ("CausalLM",),
    f"text-generation{PAST}": ("CausalLM",),
    "text-to-audio": ("TextToWaveform", "TextToSpectrogram"),
    "text2text-generation": ("Seq2SeqLM",),
    f"text2text-generation{PAST}": ("Seq2SeqLM",),
    "time-series-forecasting": ("TimeSeriesPrediction",),
    "token-classification": ("TokenClassification",),
    "video-classification": ("VideoClassification",),
    "visual-question-answering": ("VisualQuestionAnswering",),
    "zero-shot-audio-classification": ("",),
    "zero-shot-classification": ("SequenceClassification",),
    "zero-shot-image-classification": ("ZeroShotImageClassification",),
    "zero-shot-object-detection": ("ZeroShotObjectDetection",),
}


_ENDINGS = {"time-series-forecasting": "ForPrediction"}
"""Maps a task without an auto class to the suffix of its model classes: `InformerForPrediction` for `InformerConfig`.
The pipelines of transformers have no such models, and its auto class has two of the seven families."""

_PARTS = {"zero-shot-audio-classification": ("audio_config", "text_config")}
"""Names the parts that a configuration has to have, for tasks whose auto class also makes other models."""

UNSUPPORTED = {
    "any-to-any": "such a model takes and gives texts, images and sounds in one call, and no example of all is known",
    "decision": "its inputs are made from the candidates by the pipeline, not by a tokenizer",
}
"""Says for which tasks of `transformers.pipeline` no example inputs are made, and why."""


def supported() -> dict[str, tuple[str, ...]]:
    """Returns the tasks with the auto classes of each, without `AutoModelFor`."""
    return dict(_CLASSES)


def chosen(transformers: Any, config: Any, task: str, own: Mapping[str, str] = {}) -> tuple[str, Any]:
    """Returns the task, and the class of transformers for the model: an auto class, a class of the model's own, or for
    `auto` the class with which the model was saved. `own` maps auto classes to classes in Python files of the model.

    Raises:
        OnnxsmithError: `export/task` if there is no such task, or transformers has no such model for the task, or the
            configuration names no class for `auto`.
    """
    if task == "auto":
        return _saved_with(transformers, config, own)
    if task in UNSUPPORTED:
        raise problem(
            "export/task",
            f"the task {task!r} is not supported",
            why=UNSUPPORTED[task],
            fix="export it by a factory that returns (module, (), {name: tensor})",
        )
    if task not in _CLASSES:
        raise problem("export/task", f"there is no task {task!r}", fix=in_place_of(task, _CLASSES))
    kinds = _kinds(transformers, config, task, own)
    for auto in _autos(transformers, task):
        if kinds and (auto.__name__ in own or classes(auto, config)):
            return task, auto
    if kinds:
        return task, kinds[0]
    raise problem(
        "export/task",
        f"transformers has no {config.model_type!r} model for {task!r}",
        fix=f"for this kind of model: {', '.join(_able(transformers, config)) or 'none of the known tasks'}",
    )


def _able(transformers: Any, config: Any) -> list[str]:
    return [task for task in _CLASSES if _kinds(transformers, config, task)]


def _kinds(transformers: Any, config: Any, task: str, own: Mapping[str, str] = {}) -> list[Any]:
    """Returns the model's classes for a task: those of its auto classes, or else the class with the task's suffix. An
    auto class stands for a class in a file of the model."""
    if not all(hasattr(config, part) for part in _PARTS.get(task, ())):
        return []
    autos = list(_autos(transformers, task))
    found = [kind for auto in autos for kind in ([auto] if auto.__name__ in own else classes(auto, config))]
    if not found and task in _ENDINGS:
        name = type(config).__name__.removesuffix("Config") + _ENDINGS[task]
        found = [kind for kind in [getattr(transformers, name, None)] if kind is not None]
    return found


def _autos(transformers: Any, task: str) -> Iterator[Any]:
    for name in _CLASSES[task]:
        auto = getattr(transformers, f"AutoModelFor{name}" if name else "AutoModel", None)
        if auto is not None:
            yield auto


def _saved_with(transformers: Any, config: Any, own: Mapping[str, str]) -> tuple[str, Any]:
    named = list(config.architectures or ())
    for auto, place in own.items():
        named_by = [task for task in _CLASSES if auto in {one.__name__ for one in _autos(transformers, task)}]
        if named_by and place.rpartition(".")[2] in named:
            return named_by[0], getattr(transformers, auto)
    kind = next((found for name in named if (found := getattr(transformers, name, None)) is not None), None)
    if kind is None:
        raise problem(
            "export/task",
            f"transformers has no class {named[0]!r}" if named else "the configuration names no class",
            why="auto exports the class with which the model was saved, which `architectures` in config.json names",
            fix=f"give the task: {', '.join(_able(transformers, config)) or 'none of the known tasks fits'}",
        )
    for task in _CLASSES:
        if kind in _kinds(transformers, config, task):
            return task, kind
    return kind.__name__, kind
