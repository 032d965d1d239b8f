"""`--task text-classification`, `text-generation`: the tasks of texts."""

from __future__ import annotations

import importlib.util
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base import folders, user_files
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import problem
from onnxsmith.deployment.bundles import templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.dimension_ranges import refuse_outside
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch
from onnxsmith.deployment.bundles.tolerances import EQUAL
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session
from onnxsmith.verification.metrics.base import widen

TEXT = "The quick brown fox jumps over the lazy dog"
"""Is the recorded text. A choice: the text has every letter of the Latin alphabet."""
GIVEN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
"""Lists the inputs that are made from a text, by their names in transformers."""


def folder_of(content: Content, *needed: str) -> Path:
    """Returns the folder of the pretrained model, with its tokenizer.

    Raises:
        OnnxsmithError: `bundle/no-tokenizer`.
    """
    folder = content.parameters.tokenizer
    if folder is None:
        raise problem(
            "bundle/no-tokenizer",
            "no tokenizer was given",
            where=f"--task {content.task}",
            why="a tokenizer turns a text into tokens with the vocabulary that the model was trained with",
            fix="give the folder of the pretrained model, which has tokenizer.json: --tokenizer FOLDER",
        )
    missing = [name for name in ("tokenizer.json", *needed) if not (folder / name).is_file()]
    if missing:
        raise problem(
            "bundle/no-tokenizer",
            f"the folder lacks {', '.join(missing)}",
            where=str(folder),
            fix="write the folder again with transformers: "
            "AutoTokenizer.from_pretrained(…).save_pretrained(folder), and the model's save_pretrained for "
            "config.json",
        )
    if importlib.util.find_spec("tokenizers") is None:
        raise problem(
            "bundle/no-tokenizer",
            "the package tokenizers is not installed",
            why="the bundle records the tokens of a text, which this package computes",
            fix="`pip install tokenizers`",
        )
    return folder


def settings(folder: Path, name: str = "config.json") -> Mapping[str, Any]:
    """Returns the content of a JSON file of the folder; empty if there is no such file."""
    try:
        held = user_files.parse_json(user_files.read_utf8(folder / name))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise problem("bundle/no-tokenizer", f"{name} cannot be read", where=str(folder), why=str(error),
                      fix="write the folder again with save_pretrained") from error  # fmt: skip
    return held if isinstance(held, dict) else {}


def needed(content: Content, task: str, *, caches: bool = False) -> tuple[str, ...]:
    """Returns the inputs that are made from a text.

    Raises:
        OnnxsmithError: `bundle/task-mismatch` if the model needs another input, or no `input_ids`.
    """
    ports = [port for port in content.inputs if not port.optional]
    own = [port for port in ports if not (caches and is_cache(port))]
    for port in own:
        if port.name not in GIVEN or port.dtype != "int64" or (port.shape is not None and len(port.shape) != 2):
            raise mismatch(
                task, f"the task cannot compute its input {port.name!r} from a text", f"{port.name}: {port.port}"
            )
    if "input_ids" not in [port.name for port in own]:
        raise mismatch(task, "it has no input named input_ids", ", ".join(port.name for port in ports) or "no inputs")
    return tuple(port.name for port in own)


def is_cache(port: NamedPort) -> bool:
    """Whether an input takes keys or values of earlier tokens. Such inputs are recognised by the names in exports of
    transformers."""
    return port.name.startswith("past_key_values.") and port.name.endswith((".key", ".value"))


def copy_tokenizer(content: Content, folder: OwnPath) -> None:
    """Copies tokenizer.json."""
    folders.copy(folder_of(content) / "tokenizer.json", folders.OwnPath(folder / "tokenizer.json"))


def write_processing(content: Content, folder: OwnPath, template: str, **values: Any) -> None:
    """Writes processing.py and the tokenizer, and records a text with them."""
    templates.write(folder, "processing.py", template, **content.values(), **values)
    copy_tokenizer(content, folder)
    (folder / "golden" / "text.json").write_bytes(_recorded(content, folder, folder))


def record_processing(content: Content, folder: OwnPath, template: str, **values: Any) -> None:
    """Records a text for a form whose client has processing of its own."""
    with folders.temporary() as other:
        templates.write(other, "processing.py", template, **content.values(), **values)
        copy_tokenizer(content, other)
        (folder / "golden" / "text.json").write_bytes(_recorded(content, folder, other))


def _recorded(content: Content, folder: Path, code: Path) -> bytes:
    processing = runpy.run_path(str(code / "processing.py"))
    model = folder / content.model_file
    with runtimes.get(runtimes.default()).prepare(model, runtimes.patient(Options())) as session:
        found = processing["record"](_Runner(session, content), TEXT)
    return (json.dumps({**found, "tolerance": _tolerance(content)}) + "\n").encode()


def _tolerance(content: Content) -> float:
    """Returns the allowed difference of a probability. A softmax moves no probability by more than its scores move. A
    score may move by the tolerance of the output, which is relative to the largest score."""
    name = content.outputs[0].name
    moved = [
        allowed * float(np.max(np.abs(widen(scores)), initial=0.0))
        for case in content.cases
        if (allowed := case.tolerances.get(name)) is not None and isinstance(scores := case.outputs[name], np.ndarray)
    ]
    return max(EQUAL, *(float(f"{one:.1e}") for one in moved))


class _Runner:
    """Runs a session with the interface that generated code expects of a model. Refuses sizes outside the declared
    ranges."""

    def __init__(self, session: Session, content: Content) -> None:
        self._session, self._content = session, content

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        refuse_outside(self._content.ranges, self._content.signature, inputs, "the recorded text")
        return dict(self._session.run(inputs))


class TextClassification(Task):
    """Takes a text and returns classes with their probabilities."""

    packages = ("tokenizers",)
    uses = ("tokenizer", "labels")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/text_classification.py", **self._values(content))

    def record(self, content: Content, folder: OwnPath) -> None:
        record_processing(content, folder, "processing/text_classification.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name = self.id()
        config = settings(folder_of(content))
        output = content.outputs[0]
        if output.dtype != "float" or (output.shape is not None and len(output.shape) != 2):
            raise mismatch(
                name, "its first output is not a float tensor of 2 dimensions", f"{output.name}: {output.port}"
            )
        named = config.get("id2label") or {}
        labels = content.parameters.labels or tuple(str(named[key]) for key in sorted(named, key=int))
        classes = output.shape[-1] if output.shape else None
        if labels and isinstance(classes, int) and classes != len(labels):
            raise mismatch(name, f"it has {classes} classes, but there are {len(labels)} labels", output.name)
        return {
            "needed": needed(content, name),
            "output": output,
            "labels": labels,
            "several": config.get("problem_type") == "multi_label_classification",
        }


_COUNT = 16
"""Counts the tokens that are recorded. A choice."""


class TextGeneration(Task):
    """Takes a text and returns its continuation. Keys and values of earlier tokens are kept if the model takes them."""

    packages = ("tokenizers",)
    uses = ("tokenizer",)

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/text_generation.py", **self._values(content))

    def record(self, content: Content, folder: OwnPath) -> None:
        record_processing(content, folder, "processing/text_generation.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name = self.id()
        folder = folder_of(content)
        output = content.outputs[0]
        if output.dtype not in ("float", "float16") or (output.shape is not None and len(output.shape) != 3):
            raise mismatch(
                name, "its first output is not a float tensor of 3 dimensions", f"{output.name}: {output.port}"
            )
        taken = [port for port in content.inputs if is_cache(port)]
        given = {port.name for port in content.outputs}
        pairs = [(port.name.replace("past_key_values.", "present.", 1), port.name) for port in taken]
        lacking = [present for present, _ in pairs if present not in given]
        if lacking:
            raise mismatch(name, f"it has inputs for caches, but no output {lacking[0]!r}", output.name)
        return {
            "needed": needed(content, name, caches=True),
            "output": output,
            "caches": pairs,
            "empty": [(port.name, empty_shape(port.shape)) for port in taken],
            "cache_dtype": taken[0].numpy if taken else "float32",
            "ends": end_tokens(folder),
            "count": _COUNT,
        }


def empty_shape(shape: tuple[int | str | None, ...] | None) -> tuple[int, ...]:
    """Returns the shape of a cache without tokens: a batch of 1, and 0 for the length."""
    return tuple(1 if axis == 0 else dim if isinstance(dim, int) else 0 for axis, dim in enumerate(shape or ()))


def end_tokens(folder: Path) -> tuple[int, ...]:
    """Returns the tokens that end a text, from generation_config.json, else from config.json."""
    for name in ("generation_config.json", "config.json"):
        found = settings(folder, name).get("eos_token_id")
        if found is not None:
            return tuple(found) if isinstance(found, list) else (int(found),)
    return ()
