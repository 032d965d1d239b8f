"""Reads a plan from TOML. A mistake names its line and the nearest key."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import byte_count, in_place_of, nearest
from onnxsmith.fleet import plan_file, steps
from onnxsmith.fleet.plan import HERE, Environment, Limits, ModelEntry, Plan
from onnxsmith.fleet.steps import Step

_KEYS = (
    "name", "models", "exclude", "steps", "settings", "options", "environments", "workers", "time_limit",
    "memory_limit", "keep", "store",
)  # fmt: skip
_MODEL_KEYS = ("source", "name", "settings", "depends", "options")
_ENVIRONMENT_KEYS = ("python", "requirements")
_LONGEST = 1000
"""Limits the characters of a key that a pattern looks for: a pattern of megabytes takes seconds to make. A choice."""
_DEFAULT = "default"
"""The name of the setting of a plan that lists none."""


def read(path: str | Path, accepts: steps.Accepts | None = None) -> Plan:
    """Reads the plan in the file. With `accepts`, the options of verbs are read as the command line would, unless every
    environment is an interpreter of its own, whose onnxsmith may have other options.

    Raises:
        OnnxsmithError: `fleet/plan-file` if the file cannot be read or is not TOML; `fleet/plan` for a mistake in it.
    """
    file = Path(path)
    text, content = plan_file.load(file)
    return _Reader(file, text, content, accepts).plan()


class _Reader:
    """Turns the content of a file into a plan."""

    def __init__(self, file: Path, text: str, content: Mapping[str, Any], accepts: steps.Accepts | None) -> None:
        self._file, self._lines, self._text, self._content = file, text.split("\n"), text, content
        self._start = 0
        self._accepts = accepts

    def plan(self) -> Plan:
        """Returns the plan."""
        self._refuse_unknown(self._content, _KEYS)
        environments = self._environments()
        if all(one.python and not one.requirements for one in environments):
            self._accepts = None
        models, settings = self._models(), self._settings()
        self._refuse_unused(models, settings)
        self._refuse_incomplete(models, settings)
        return Plan(
            path=self._file,
            name=self._word("name") or self._file.stem,
            models=models,
            settings=settings,
            environments=environments,
            limits=Limits(self._number("time_limit", Limits.seconds), self._size("memory_limit")),
            workers=self._count("workers"),
            keep=self._keep(),
            store=self._word("store"),
            text=self._text,
        )

    def _models(self) -> tuple[ModelEntry, ...]:
        entries = self._content.get("models")
        entries = [entries] if isinstance(entries, str | dict) else entries
        if not isinstance(entries, list) or not entries:
            raise self._mistake("the plan names no models", "models", fix=plan_file.EXAMPLE)
        excluded = self._texts("exclude", self._content)
        entries = [self._model(entry) for entry in entries]
        for pattern in excluded:
            entries.append(ModelEntry(f"!{pattern}", where=self._place("exclude")))
        return tuple(entries)

    def _model(self, entry: Any) -> ModelEntry:
        if isinstance(entry, str):
            return ModelEntry(entry, where=self._place(entry, is_value=True))
        if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
            fix = 'write "models/a.onnx", or { source = "models/a.onnx", name = "a" }'
            raise self._mistake(f"a model is a text or a table with source, not {entry!r}", "models", fix=fix)
        with self._after(entry["source"], is_value=True):
            self._refuse_unknown(entry, _MODEL_KEYS)
            return ModelEntry(
                entry["source"],
                name=self._word("name", entry),
                options=self._options(entry.get("options", {})),
                settings=self._texts("settings", entry),
                depends=self._texts("depends", entry),
                where=self._place(entry["source"], is_value=True),
            )

    def _settings(self) -> dict[str, tuple[Step, ...]]:
        common = self._steps(self._content)
        with self._after("options"):
            options = self._options(self._content.get("options", {}))
        tables = self._content.get("settings", {_DEFAULT: {}})
        if not isinstance(tables, dict) or not tables or not all(isinstance(table, dict) for table in tables.values()):
            fix = 'write a table for each setting: [settings.opset23], and in it opset = "23"'
            raise self._mistake("settings are tables", "settings", fix=fix)
        settings = {}
        for name, table in tables.items():
            with self._after(name):
                settings[name] = self._setting(name, table, common, options)
        return settings

    def _setting(
        self, name: str, table: Mapping[str, Any], common: Sequence[str], options: Mapping[str, tuple[str, ...]]
    ) -> tuple[Step, ...]:
        verbs = self._steps(table) or common
        own = self._options({key: value for key, value in table.items() if key != "steps"})
        for verb in own:
            if verb not in verbs:
                listed = f"the steps of {name} are {', '.join(verbs) or 'none'}"
                fix = in_place_of(verb, verbs) if verbs else "add steps"
                raise self._mistake(f"{verb!r} has options, but is not a step", verb, why=listed, fix=fix)
        if not verbs:
            raise self._mistake(f"the setting {name!r} has no steps", name, fix='add steps = ["simplify", "check"]')
        steps_there = tuple(Step(verb, (*options.get(verb, ()), *own.get(verb, ()))) for verb in verbs)
        self._refuse_order(name, steps_there)
        return steps_there

    def _refuse_unused(self, models: Sequence[ModelEntry], settings: Mapping[str, Sequence[Step]]) -> None:
        """Raises if a verb has options, and is no step of any setting that they are for."""
        used = {name: [step.verb for step in listed] for name, listed in settings.items()}
        steps_there = list(dict.fromkeys(verb for verbs in used.values() for verb in verbs))
        for key in self._content.get("options", {}):
            if steps.verb(key, "") not in steps_there:
                with self._after("options"):
                    raise self._unused(key, self._place(key), steps_there)
        for entry in models:
            own = [verb for name in entry.settings or used for verb in used.get(name, steps_there)]
            for verb in entry.options:
                if verb not in own:
                    raise self._unused(verb, entry.where, list(dict.fromkeys(own)))

    def _unused(self, verb: str, where: str, verbs: Sequence[str]) -> OnnxsmithError:
        near = nearest(verb, verbs)
        return problem(
            "fleet/plan",
            f"{verb!r} has options, but is not a step",
            where=where,
            why=f"the steps are {', '.join(verbs)}",
            fix=f"write {near} in place of {verb}"
            if near
            else f"leave the options of {verb} out, or add {verb} to the steps",
        )

    def _refuse_incomplete(self, models: Sequence[ModelEntry], settings: Mapping[str, Sequence[Step]]) -> None:
        """Raises if an argument of a step is missing in the setting, and some model does not add options to it."""
        for name, listed in settings.items():
            entries = [one for one in models if name in (one.settings or settings) and not one.source.startswith("!")]
            for step in listed:
                if all(step.verb in entry.options for entry in entries):
                    continue
                with self._after(name):
                    self._refuse_words(step.verb, step.options, step.verb, is_whole=True)

    def _refuse_words(self, verb: str, words: Sequence[str], key: str, *, is_whole: bool) -> None:
        """Raises if the command line of the verb does not take the words. `is_whole`: no argument may be missing."""
        typed = steps.words_of(Step(verb, tuple(words)), "FIRST", "MODEL", "OUT")
        mistake = self._accepts(verb, typed) if self._accepts is not None else None
        if mistake is None or (mistake.is_missing and not is_whole):
            return
        where = self._place(key) if self._line(key, is_value=False) is not None else self._place(key, is_value=True)
        raise problem("fleet/plan", mistake.what, where=where, why=mistake.why, fix=mistake.fix)

    def _refuse_order(self, name: str, listed: Sequence[Step]) -> None:
        """Raises if a step can never have what it reads."""
        writes = False
        for place, step in enumerate(listed):
            if step.role is steps.Role.MAKES and place:
                raise self._mistake(
                    f"in {name!r}, export comes after {listed[place - 1].verb}", name, fix="put export first"
                )
            if step.role is steps.Role.COMPARES and not writes:
                why = (
                    "{verb} compares the first model file of a cell with the current file, but here the two are "
                    "the same file"
                )
                fix = f'put a verb that writes a model in front: ["simplify", "{step.verb}"]'
                raise self._mistake(f"in {name!r}, {step.verb} has nothing to compare", name, why=why, fix=fix)
            writes = writes or step.role is steps.Role.REWRITES

    def _environments(self) -> tuple[Environment, ...]:
        tables = self._content.get("environments", {HERE: {}})
        if not isinstance(tables, dict) or not tables or not all(isinstance(table, dict) for table in tables.values()):
            fix = 'write a table for each: [environments.newest], and in it requirements = ["onnxruntime==1.32.0"]'
            raise self._mistake("environments are tables", "environments", fix=fix)
        environments = []
        for name, table in tables.items():
            with self._after(name):
                self._refuse_unknown(table, _ENVIRONMENT_KEYS)
                python, requirements = self._word("python", table), self._texts("requirements", table)
            if not requirements and Path(python).name != python:
                python = str(self._file.absolute().parent / python)
            environments.append(Environment(name, python, requirements))
        return tuple(environments)

    def _steps(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(steps.verb(name, self._place(name, is_value=True)) for name in self._texts("steps", table))

    def _options(self, table: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(table, dict):
            fix = 'write a table of verbs: [options], and in it check = "--target openvino"'
            raise self._mistake("options are a table", "options", fix=fix)
        options: dict[str, tuple[str, ...]] = {}
        for key, value in table.items():
            verb = steps.verb(key, self._place(key))
            words = steps.words(value)
            if words is None and isinstance(value, str):
                line = self._line(key, is_value=False)
                raise plan_file.open_words(key, value, self._place(key), self._lines[line] if line is not None else "")
            if words is None:
                fix = f'write a text or a list of texts: {key} = "--dim batch=4"'
                raise self._mistake(f"the options of {key} are {value!r}", key, fix=fix)
            self._refuse_words(verb, words, key, is_whole=False)
            options[verb] = words
        return options

    def _texts(self, key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
        value = table.get(key, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self._mistake(f"{key} is a list of texts, not {value!r}", key, fix=f'write `{key} = ["…"]`')
        return tuple(value)

    def _word(self, key: str, table: Mapping[str, Any] | None = None) -> str:
        value = (self._content if table is None else table).get(key, "")
        if not isinstance(value, str):
            raise self._mistake(f"{key} is a text, not {value!r}", key, fix=f'write `{key} = "{value}"`')
        return value

    def _keep(self) -> str:
        """Returns the folder for files that steps write. Refuses a path on which a file stands."""
        keep = self._word("keep")
        path = self._file.parent / keep
        # os.path also takes a text that can be no path
        taken = next((one for one in (path, *path.parents) if os.path.exists(one) and not os.path.isdir(one)), None)  # noqa: PTH110, PTH112
        if keep and taken is not None:
            raise self._mistake(f"keep names a folder, but {taken} is a file", "keep", fix='write keep = "kept"')
        return keep

    def _number(self, key: str, default: float) -> float:
        value = self._content.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise self._mistake(f"{key} is a number of seconds, not {value!r}", key, fix=f"write `{key} = {default:g}`")
        return float(value)

    def _count(self, key: str) -> int:
        value = self._content.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._mistake(f"{key} is a whole number, not {value!r}", key, fix=f"write `{key} = 2`")
        return value

    def _size(self, key: str) -> int:
        value = self._content.get(key, 0)
        size = None if isinstance(value, bool) else byte_count(str(value))
        if size is None:
            raise self._mistake(f"{key} is a size in bytes, not {value!r}", key, fix=f'write `{key} = "4GB"`')
        return size

    def _refuse_unknown(self, table: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                near = nearest(key, known)
                fix = f"remove {key}, because {near} is also given" if near in table else in_place_of(key, known)
                raise self._mistake(f"a plan has no key {key!r} here", key, fix=fix)

    def _mistake(self, what: str, key: str, *, why: str = "", fix: str = "") -> OnnxsmithError:
        return problem("fleet/plan", what, where=self._place(key), why=why, fix=fix)

    @contextmanager
    def _after(self, text: str, *, is_value: bool = False) -> Iterator[None]:
        """Looks for the places of the block from the line with a key on, or with a value: the key of a table."""
        before, line = self._start, self._line(text, is_value)
        self._start = before if line is None else line
        try:
            yield
        finally:
            self._start = before

    def _place(self, text: str, *, is_value: bool = False) -> str:
        """Returns the file and the line with the key, or with the text as a value."""
        line = self._line(text, is_value)
        return str(self._file) if line is None else f"{self._file}, line {line + 1}"

    def _line(self, text: str, is_value: bool) -> int | None:
        """Returns the index of the line with the key, or with the text as a value: the first after the present table
        began, else the first of all."""
        numbers = (*range(self._start, len(self._lines)), *range(self._start))
        if len(text) > _LONGEST:
            return next((number for number in numbers if text in self._lines[number]), None)
        quoted = re.escape(text)
        key = rf"(?:^|[\s{{,.\[])[\"']?{quoted}[\"']?\s*(?:=|\])|^\s*(?:[\w-]+\.)*{quoted}\s*\."
        pattern = re.compile(rf"[\"']{quoted}[\"']" if is_value else key)
        return next((number for number in numbers if pattern.search(_code(self._lines[number]))), None)


def _code(line: str) -> str:
    """Returns a line of TOML, "" for a comment."""
    return "" if line.lstrip().startswith("#") else line
