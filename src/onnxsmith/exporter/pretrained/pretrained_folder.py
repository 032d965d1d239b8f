"""Loads a model of transformers from a local folder: `config.json`, with or without weights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.exporter.factory import TorchModel, broken_package
from onnxsmith.exporter.pretrained import own_code
from onnxsmith.exporter.pretrained.example_makers import ranges
from onnxsmith.exporter.pretrained.own_code import OwnCode
from onnxsmith.exporter.pretrained.pretrained_examples import CACHE, PAST_INPUT, examples
from onnxsmith.exporter.pretrained.tasks import PAST, STATELESS, chosen
from onnxsmith.graph.structure.dim_ranges import Range

_SAFE, _PICKLED = "*.safetensors", "pytorch_model*.bin"


@dataclass(frozen=True)
class Pretrained:
    """The model with example inputs, and the axes that are dynamic by default."""

    model: TorchModel
    dynamic: dict[str, dict[int, str]]
    ranges: dict[str, Range]
    """Holds the sizes that the processor makes, by the name of the dimension."""


def load(place: str, task: str, *, trust: bool = False) -> Pretrained:
    """Loads the model in a folder, or makes one with random weights from a `config.json`. Downloads nothing, and reads
    pickled weights as tensors only. Code from the folder runs only with `trust`. transformers never asks the user.

    Raises:
        OnnxsmithError: `export/transformers-missing`, `export/transformers-folder`, `export/transformers-import`,
            `export/own-code`, `export/task`, or `export/no-inputs`.
    """
    path = Path(place)
    config_file = path / "config.json" if path.is_dir() else path
    if not config_file.is_file():
        raise problem(
            "export/transformers-folder",
            "the file config.json does not exist",
            where=str(config_file.absolute()),
            why="a model is loaded from a local folder with a config.json; nothing is downloaded",
            fix=_nearest(path),
        )
    transformers = _transformers()
    folder = config_file.parent
    code = own_code.of_folder(config_file)
    runs = trust and bool(code.classes)
    if not trust and code.is_needed(transformers):
        raise code.refusal()
    try:
        config = transformers.AutoConfig.from_pretrained(
            str(folder if runs else config_file), local_files_only=True, trust_remote_code=trust
        )
        task, auto = _chosen(transformers, config, task, code, trust=trust)
        _no_cache(config, keep=task.endswith(PAST))
        module, notes = _made(auto, config, folder if path.is_dir() else None, trust=trust)
    except OnnxsmithError:
        raise
    except Exception as error:
        raise _explained(error, config_file) from error
    try:
        found = examples(module, config, folder, task)
    except OnnxsmithError as error:
        if error.problem.fix != STATELESS:
            raise
        fix = f"--task {task.removesuffix(PAST)}: that file takes the whole text in each call"
        raise OnnxsmithError(replace(error.problem, fix=fix)) from error
    notes = (f"{type(module).__name__} for {task}", *code.notes(ran=trust), *notes)
    limits = (*found.limits, *code.limits(ran=trust))
    names = {CACHE: PAST_INPUT}
    model = TorchModel(module, (), found.kwargs, notes=notes, names=names, limits=limits, more=found.more)
    return Pretrained(model, found.dynamic, ranges(folder, found.kwargs.get("pixel_values")))


def _chosen(transformers: Any, config: Any, task: str, code: OwnCode, *, trust: bool) -> tuple[str, Any]:
    """Returns the task and the class of the model. Without `trust`, the code of the folder is no choice."""
    try:
        return chosen(transformers, config, task, code.classes if trust else {})
    except OnnxsmithError as error:
        try:
            chosen(transformers, config, task, code.classes)
        except OnnxsmithError:
            raise error from None  # the code would not help
        raise code.refusal() from error


_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
"""Matches the name of a model on the Hub: `bert-base-uncased`, `owner/name`."""


def _nearest(path: Path) -> str:
    """Tells which folder to give in place of one without a configuration."""
    found = sorted(one.parent for form in ("*", "snapshots/*") for one in path.glob(f"{form}/config.json"))
    if found:
        return f"write {pasted(found[-1])} in place of {path}: it has a config.json"
    beside = [str(one.parent) for one in path.parent.glob("*/config.json")]
    if nearest := near_names(str(path), beside, 1):
        return f"write {pasted(nearest[0])} in place of {path}"
    name = str(path)
    if path.exists() or not _HUB_NAME.fullmatch(name):
        return "give the folder that save_pretrained wrote, or the folder of a downloaded model"
    code = f'from huggingface_hub import snapshot_download as load; load("{name}", local_dir="{name}")'
    return f"give the folder that save_pretrained wrote; or download the model first: `python -c {pasted(code)}`"


def _transformers() -> Any:
    try:
        import transformers as library
    except ImportError as error:
        raise problem(
            "export/transformers-missing",
            "transformers cannot be imported",
            why=f"{type(error).__name__}: {error}",
            fix="`pip install transformers`",
        ) from error
    transformers: Any = library
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def _no_cache(config: Any, keep: bool) -> None:
    """Makes the model return its cache only if `keep` is True."""
    for part in (config, *(getattr(config, name, None) for name in ("text_config", "decoder"))):
        if hasattr(part, "use_cache"):
            part.use_cache = keep


def _made(auto: Any, config: Any, folder: Path | None, *, trust: bool) -> tuple[Any, tuple[str, ...]]:
    saved = getattr(config, "dtype", None)
    safe = folder is not None and any(folder.glob(_SAFE))
    if folder is None or not (safe or any(folder.glob(_PICKLED))):
        is_auto = hasattr(auto, "from_config")
        with seeded():
            made = auto.from_config(config, trust_remote_code=trust) if is_auto else auto(config)
        module = made.float().eval()
        return module, ("the weights are random: the folder has a configuration but no weights",)
    module, info = auto.from_pretrained(
        str(folder), config=config, local_files_only=True, use_safetensors=safe, dtype=torch.float32,
        output_loading_info=True, trust_remote_code=trust,
    )  # fmt: skip
    return module.eval(), tuple(_loaded(saved, info))


def _loaded(saved: Any, info: Any) -> Iterator[str]:
    if saved is not None and saved != torch.float32:
        yield f"the weights were saved as {str(saved).removeprefix('torch.')}; they are exported as float32"
    missing = sorted(info["missing_keys"])
    if missing:
        names = first_few(missing, 5)
        yield f"the files lack {several(len(missing), 'weight')}, random values were taken: {names}"


def _explained(error: Exception, where: Path) -> OnnxsmithError:
    text = f"{type(error).__name__}: {error}"
    factory = "a factory, and export file.py:factory"
    if "does not recognize this architecture" in text:
        fix = f"`pip install --upgrade transformers`; or make the model in {factory}"
    else:
        fix = f"correct what the error names in {where.parent}; or load the model in {factory}"
    return broken_package(error) or problem(
        "export/transformers-folder",
        "transformers cannot load a model from this folder",
        where=str(where),
        why=" ".join(text.split())[:600],
        fix=fix,
    )
