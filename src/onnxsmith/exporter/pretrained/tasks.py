"""The names of tasks, and the classes of transformers for each task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.problem import problem
from onnxsmith.seams.transformers import classes

PAST = "-with-past"
"""Suffix of tasks whose model takes and returns a cache of keys and values."""

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
    "image-to-image": ("ImageToImage",),
    "keypoint-detection": ("KeypointDetection",),
    "masked-im": ("MaskedImageModeling",),
    "object-detection": ("ObjectDetection",),
    "question-answering": ("QuestionAnswering",),
    "semantic-segmentation": ("SemanticSegmentation",),
    "sentence-similarity": ("",),
    "text-classification": ("SequenceClassification",),
    "text-generation": ("CausalLM",),
    f"text-generation{PAST}": ("CausalLM",),
    "text2text-generation": ("Seq2SeqLM",),
    f"text2text-generation{PAST}": ("Seq2SeqLM",),
    "token-classification": ("TokenClassification",),
    "video-classification": ("VideoClassification",),
    "zero-shot-image-classification": ("ZeroShotImageClassification",),
    "zero-shot-object-detection": ("ZeroShotObjectDetection",),
}


def chosen(transformers: Any, config: Any, task: str) -> tuple[str, Any]:
    """The task, and the auto class of transformers for the model. `auto` chooses the task of the configuration's class.

    Raises:
        OnnxsmithError: `export/task` if there is no such task, or transformers has no such model for the task.
    """
    if task == "auto":
        task = _saved_with(transformers, config)
    if task not in _CLASSES:
        raise problem("export/task", f"there is no task {task!r}", fix=f"one of: {', '.join(_CLASSES)}")
    for auto in _autos(transformers, task):
        if classes(auto, config):
            return task, auto
    able = [one for one in _CLASSES if any(classes(auto, config) for auto in _autos(transformers, one))]
    raise problem(
        "export/task",
        f"transformers has no {config.model_type!r} model for {task!r}",
        fix=f"for this kind of model: {', '.join(able) or 'none of the known tasks'}",
    )


def _autos(transformers: Any, task: str) -> Iterator[Any]:
    for name in _CLASSES[task]:
        auto = getattr(transformers, f"AutoModelFor{name}" if name else "AutoModel", None)
        if auto is not None:
            yield auto


def _saved_with(transformers: Any, config: Any) -> str:
    for architecture in config.architectures or ():
        for task in _CLASSES:
            for auto in _autos(transformers, task):
                if architecture in [kind.__name__ for kind in classes(auto, config)]:
                    return task
    return "feature-extraction"
