"""Recognises errors that a translation raised which the user registered."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.causes._message_text import line_in, sentence
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import is_installed
from onnxsmith.exporter.translating.missing_operators import UntranslatedError
from onnxsmith.exporter.translating.register import Registration, registered


def error_of(error: BaseException, called_at: str = "") -> OnnxsmithError | None:
    """Returns the error of the registered translation that raised `error`; None if none did.

    `called_at` is the line of forward that calls the operator, if the caller knows it. If the translation would raise
    at every size of the inputs, the error is an `UntranslatedError`.
    """
    codes = {code: one for one in registered() for function in _functions(one) for code in _code(function)}
    raised = next((place for one in _chain(error) if (place := _place(one, codes)) is not None), None)
    if raised is None or isinstance(raised[2], OnnxsmithError):
        return None
    registration, line, cause = raised
    name = getattr(inspect.unwrap(next(_functions(registration))), "__name__", "the translation")
    operator = name_of(registration)
    known = recognise(str(cause), line)
    why = f"{type(cause).__name__}: {sentence(str(cause))}"
    fix = f"correct the translation at {line}, or leave it out"
    if known is not None:
        why = f"{known.what.replace('forward', name, 1)}: {known.why}"
        fix = f"correct the translation at {line}: {known.fix}"
    called_at = called_at or line_in(str(error))
    said = Problem(
        "export/translation-failed",
        f"the translation {name} that you registered for {operator} failed",
        where=line,
        why=f"{why}; forward calls the operator at {called_at}" if called_at not in ("", line) else why,
        fix=fix,
    )
    if known is not None and known.id.startswith("forward/") and isinstance(registration.target, str):
        return UntranslatedError(said, [registration.target])
    return OnnxsmithError(said)


def name_of(registration: Registration) -> str:
    """Returns the name of a registered operator or function."""
    target = registration.target
    return target if isinstance(target, str) else str(getattr(target, "__qualname__", target))


def _functions(registration: Registration) -> Iterator[Callable[..., Any]]:
    yield from registration.writers or (registration.decompose,)


def _code(function: Callable[..., Any]) -> Iterator[CodeType]:
    """Yields the code of a function: empty for a class, or for a function that is written in C."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        yield code


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error and its causes, the innermost first."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    yield from reversed(found)


def _place(error: BaseException, codes: dict[CodeType, Registration]) -> tuple[Registration, str, BaseException] | None:
    """Returns the registered translation that the error passed through, the innermost line of the user in it, and the
    error."""
    registration: Registration | None = None
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        registration = codes.get(frame.f_code, registration)
        file = frame.f_code.co_filename
        if registration is not None and (not is_installed(file) or frame.f_code in codes):
            line = f"{file}:{number}"
    return (registration, line, error) if registration is not None else None
