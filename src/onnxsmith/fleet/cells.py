"""Makes the cells of a plan: one for each model, setting and environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from onnxsmith.base import name_patterns, rooms
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few, in_place_of
from onnxsmith.fleet import environments, kept_files, missing_models
from onnxsmith.fleet.digests import Digests, remembered
from onnxsmith.fleet.plan import Environment, Limits, ModelEntry, Plan
from onnxsmith.fleet.sources.base import Model, Source
from onnxsmith.fleet.steps import Step, needed

_FORMAT = 1
"""The format of rows. It is part of each key: rows of another format are computed again."""
_BASELINE = ("baseline.json", "baseline.zip")
"""The files that `baseline check` reads if its options name no other."""
_SHOWN = 3
"""Limits the models that a problem lists. A choice."""
_KEY = 32
"""Hexadecimal digits of a key: 128 bits, so that equal keys of different cells need not be expected."""


@dataclass(frozen=True)
class Cell:
    """One cell: what an engine needs to run it anywhere.

    `key` follows from all that may change the result: the bytes of the model and of files that options name, the steps,
    the environment and the limits. `folder` is the folder of the plan, in which the steps run.
    """

    key: str
    model: Model
    setting: str
    environment: Environment
    steps: tuple[Step, ...]
    folder: str
    limits: Limits
    keep: str = ""
    threads: int = 0

    @property
    def place(self) -> tuple[str, str, str]:
        """Returns the model, the setting and the environment: the cell's place in the table."""
        return self.model.name, self.setting, self.environment.name


def of_plan(plan: Plan) -> list[Cell]:
    """Returns the cells of a plan, in the order of the plan.

    Raises:
        OnnxsmithError: `fleet/no-models`, `fleet/plan`, `fleet/model-unreadable`, and the errors of sources and
            environments.
    """
    with stage("read the models"), remembered() as digests:
        stamps = {environment.name: environments.stamp(environment) for environment in plan.environments}
        options = _OptionFiles(plan.folder, digests)
        cells = []
        for model, entry in models(plan):
            content = [digests.files(model.files, plan.folder), digests.files(entry.depends, plan.folder), model.stamp]
            for setting, steps in plan.settings.items():
                if entry.settings and setting not in entry.settings:
                    continue
                listed = tuple(_with_options(step, entry, model) for step in needed(steps, is_file=model.is_file))
                for environment in plan.environments:
                    identity = [
                        _FORMAT,
                        model.argument,
                        *content,
                        [[step.verb, step.options, options.digest(step)] for step in listed],
                        stamps[environment.name],
                        [plan.limits.seconds, plan.limits.bytes],
                        [plan.keep, model.name, setting, environment.name] if plan.keep else [],
                    ]
                    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_KEY]
                    folder = str(plan.folder)
                    cells.append(Cell(key, model, setting, environment, listed, folder, plan.limits, plan.keep))
    return cells


def models(plan: Plan) -> list[tuple[Model, ModelEntry]]:
    """Returns the models of a plan with the entries that name them. A model that two entries name counts once: the
    later entry wins, as a single file after a pattern.

    Raises:
        OnnxsmithError: `fleet/no-models` if an entry names none, or all are excluded.
    """
    excluded = [entry.source[1:] for entry in plan.models if entry.source.startswith("!")]
    listed: dict[str, tuple[Model, ModelEntry]] = {}
    for entry in plan.models:
        if entry.source.startswith("!"):
            continue
        _refuse_unknown_settings(entry, plan)
        matched = _models_of(entry.source, plan.folder)
        if not matched:
            raise missing_models.refusal(entry.source, plan.folder, entry.where)
        _refuse_options_of_export(entry, matched)
        if entry.name:
            matched = [_renamed(matched, entry)]
        for model in matched:
            place = model.address or model.argument  # the argument of a file to fetch is its name alone
            if not any(name_patterns.fits(place, pattern) for pattern in excluded) and not _is_kept(model, plan):
                listed[place] = (model, entry)
    if not listed:
        raise problem(
            "fleet/no-models", "all models are excluded", where=str(plan.path), fix="shorten the list of exclude"
        )
    _refuse_equal_names(plan, [model for model, _ in listed.values()])
    _refuse_files_as_folders(plan, [model for model, _ in listed.values()])
    return list(listed.values())


def shard(cells: Sequence[Cell], number: int, count: int) -> list[Cell]:
    """Returns one of `count` parts of the cells, in their order. The keys decide, so every machine makes the same
    parts, and cells with one key are in one part; a part has cells of all models and settings."""
    keys = set(sorted(by_key(cells))[number - 1 :: count])
    return [cell for cell in cells if cell.key in keys]


def by_key(cells: Iterable[Cell]) -> dict[str, Cell]:
    """Returns the cells by key. Cells with one key, such as two settings with equal steps, are computed once."""
    return {cell.key: cell for cell in cells}


@cache
def _sources() -> list[Source]:
    return sorted(rooms.members("onnxsmith.fleet.sources", Source).values(), key=lambda source: source.rank)


def _models_of(text: str, folder: Path) -> list[Model]:
    source = next(source for source in _sources() if source.takes(text, folder))
    return list(source.models(text, folder))


def _renamed(matched: Sequence[Model], entry: ModelEntry) -> Model:
    """Returns the only model of an entry under the name that the entry gives it."""
    if len(matched) > 1:
        raise problem(
            "fleet/plan",
            f"{len(matched)} models cannot all be called {entry.name!r}",
            where=entry.where,
            why=f"{entry.source} names {first_few([model.name for model in matched], _SHOWN)}",
            fix="leave the name out, or select a single model by its path",
        )
    return replace(matched[0], name=entry.name)


def _refuse_unknown_settings(entry: ModelEntry, plan: Plan) -> None:
    for setting in entry.settings:
        if setting not in plan.settings:
            raise problem(
                "fleet/plan",
                f"there is no setting {setting!r}",
                where=entry.where,
                fix=in_place_of(setting, list(plan.settings)),
            )


def _refuse_options_of_export(entry: ModelEntry, matched: Sequence[Model]) -> None:
    if "export" in entry.options and all(model.is_file for model in matched):
        raise problem(
            "fleet/plan",
            f"the model {matched[0].name!r} has options for export, but is not exported",
            where=entry.where,
            why="the model is already an ONNX file",
            fix="leave these options out, or name a factory: nets.py:build",
        )


def _refuse_equal_names(plan: Plan, listed: Sequence[Model]) -> None:
    names: set[str] = set()
    for model in listed:
        if model.name in names:
            raise problem(
                "fleet/plan",
                f"two models are called {model.name!r}",
                where=str(plan.path),
                fix="give one of them another name: { source = …, name = … }",
            )
        names.add(model.name)


def _is_kept(model: Model, plan: Plan) -> bool:
    """Whether an earlier run wrote the file, which a pattern such as `**/*.onnx` names, too."""
    return (
        bool(plan.keep) and model.is_file and kept_files.lies_in(plan.folder / model.argument, plan.folder / plan.keep)
    )


def _refuse_files_as_folders(plan: Plan, listed: Sequence[Model]) -> None:
    for model in listed if plan.keep else ():
        folder = kept_files.folder_of((model.name, "", ""), plan.folder / plan.keep).parents[1]
        if folder.is_file():
            raise problem(
                "fleet/plan",
                f"the files of {model.name} cannot be kept",
                where=str(plan.path),
                why=f"these files need the folder {folder}, but that is a file",
                fix='keep the files in another folder: keep = "out"',
            )


def _with_options(step: Step, entry: ModelEntry, model: Model) -> Step:
    of_model = model.options if step.verb == "export" else ()
    return Step(step.verb, (*of_model, *step.options, *entry.options.get(step.verb, ())))


class _OptionFiles:
    """Digests of the files that options name: `--data calibration.npz`, `--input x=photo.png`."""

    def __init__(self, folder: Path, digests: Digests) -> None:
        self._folder, self._digests = folder, digests

    def digest(self, step: Step) -> list[str]:
        """Returns the digests of the files that a step reads beside the model, in their order."""
        names = (*step.options, *(_BASELINE if step.verb == "baseline check" else ()))
        return [self._digests.file(file) for word in names for file in self._files(word)]

    def _files(self, word: str) -> Iterator[Path]:
        for text in dict.fromkeys((word, word.partition("=")[2])):
            path = self._folder / text
            try:
                if text and path.is_file():
                    yield path
                elif text and path.is_dir() and text not in (".", ".."):
                    yield from sorted(file for file in path.rglob("*") if file.is_file())
            except (OSError, ValueError):  # too long for a name; a null byte
                continue
