"""Writes the options in an error as the caller knows them: `--budget 0.5%` becomes `budget="0.5%"` in Python.

Messages name options as they are typed on a command line. A Python function that implements a command is decorated with
`in_python`; the command calls it inside `typed`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from onnxsmith.base.problem import OnnxsmithError, Problem

P = ParamSpec("P")
R = TypeVar("R")

_IS_TYPED: ContextVar[bool] = ContextVar("is_typed", default=False)
"""Whether the caller is a command."""
_OTHER = {"dim": "sizes"}
"""Options that have another name in Python."""
_OFF = {"no-time": ("times", "measure_time")}
"""Maps a flag that turns something off to the arguments that it may be."""
_COMMAND = re.compile(r"(`(?:onnxsmith|pip|quantize|bisect) [^`]*`)")
"""Commands, which are not changed."""
_LISTED = re.compile(r"`echo (\w+) > [\w.]+`, then add --keep [\w.]+")
"""The advice to write a keep-list with one layer."""
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:( )([^\s`]+))?")
_JOINED = re.compile(r"(--[a-z][a-z-]* [^\s,`]+) (?=--[a-z])")
"""Options in a row: Python separates them by commas."""
_WORDS = {"onnxruntime", "openvino", "web", "tensorrt-rtx", "auto", "norm", "activation", "first-order"}
"""Values of options that could be taken for words of the sentence."""


@contextmanager
def typed() -> Iterator[None]:
    """Makes errors name options as they are typed on a command line, while the block runs."""
    token = _IS_TYPED.set(True)
    try:
        yield
    finally:
        _IS_TYPED.reset(token)


def is_typed() -> bool:
    """Whether a command calls, so that its user types options."""
    return _IS_TYPED.get()


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function: unless a command calls it, its problems, raised or in the report of its result, name
    arguments instead of options."""
    arguments = {name: one.default for name, one in inspect.signature(function).parameters.items()}

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        if _IS_TYPED.get():
            return function(*args, **options)
        try:
            found = function(*args, **options)
        except OnnxsmithError as error:
            error.problem = _problem(error.problem, arguments)
            error.args = (str(error.problem),)
            raise
        made: R = replace(found, report=_report(found.report, arguments))  # type: ignore[type-var, attr-defined]
        return made

    return called


def _report(report: Any, arguments: Mapping[str, Any]) -> Any:
    return replace(report, problems=tuple(_problem(one, arguments) for one in report.problems))


def _problem(found: Problem, arguments: Mapping[str, Any]) -> Problem:
    what, where, why, fix = (respelled(text, arguments) for text in (found.what, found.where, found.why, found.fix))
    tried = tuple(respelled(text, arguments) for text in found.tried)
    return Problem(found.id, what, where, why, fix, tried)


def respelled(text: str, arguments: Mapping[str, Any]) -> str:
    """Returns the text with `arguments` of a function in place of options. `arguments` maps names to defaults. Other
    options and commands stay."""
    text = _LISTED.sub(r'keep=["\1"]', text)
    parts = _COMMAND.split(text)
    return "".join(
        part if index % 2 else _OPTION.sub(lambda match: _argument(match, arguments), _JOINED.sub(r"\1, ", part))
        for index, part in enumerate(parts)
    )


def _argument(match: re.Match[str], arguments: Mapping[str, Any]) -> str:
    option, space, rest = match[1], match[2] or "", match[3] or ""
    if option in _OFF:
        argument = next((one for one in _OFF[option] if one in arguments), _OFF[option][-1])
        return f"{argument}=False{space}{rest}"
    name = _OTHER.get(option, option.replace("-", "_"))
    if name not in arguments:
        return match[0]
    value = rest.rstrip(",;.:)")
    end = rest[len(value) :]
    if isinstance(arguments[name], bool):
        return f"{name}=True{space}{rest}"
    if not _is_value(value):
        return f"{name}=…{space}{rest}"
    return f"{name}={_literal(name, value)}{end}"


def _is_value(text: str) -> bool:
    return text in _WORDS or text.isupper() or bool(re.search(r"[\d%:=/.]", text))


def _literal(name: str, value: str) -> str:
    """Returns the value as a Python literal."""
    if value.isupper():
        return "…"
    if name == "keep":
        return '["name", …]'
    if name == "sizes" and "=" in value:
        dim, _, size = value.partition("=")
        return f'{{"{dim}": {size}}}'
    return value if re.fullmatch(r"\d+(\.\d+)?", value) else f'"{value}"'
