"""`register`: what an operator of the user's own is in ONNX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.problem import problem
from onnxsmith.seams.torch import operators

DELIVERIES = ("operators", "function", "plugin")


@dataclass(frozen=True)
class Registration:
    """An operator of the user's own, what it computes in PyTorch's operators, and as what it goes into the file."""

    target: str | type[torch.autograd.Function]
    decompose: Callable[..., Any]
    deliver: str
    domain: str
    name: str
    signature: inspect.Signature


_known: dict[Any, Registration] = {}


def registered() -> tuple[Registration, ...]:
    """Every registration of this process, in the order in which they were made."""
    return tuple(_known.values())


def forget(target: str | type[torch.autograd.Function]) -> None:
    """Takes a registration back; nothing happens when there is none."""
    _known.pop(target, None)


def register(
    target: str | type[torch.autograd.Function],
    translation: Callable[..., Any] | None = None,
    *,
    deliver: str = "operators",
    domain: str = "custom",
    name: str | None = None,
) -> Any:
    """Says what an operator is in ONNX, for every export of this process. Also a decorator: `@register("lib::op")`.

    `target` is an operator of torch.library (`"mylib::scale"`, `"mylib::scale.out"` for one overload), one of PyTorch
    itself (`"aten::special_zeta"`), or a subclass of `torch.autograd.Function`. `translation` takes the operator's
    arguments, in its order, and computes its result with PyTorch's operators; `onnxsmith.onnx_op` puts a node of ONNX
    there. It is traced with the shapes and dtypes of each call.

    `deliver` is as what it goes into the file: "operators" puts those of the translation in its place; "function" puts
    one node `domain::name`, with a model-local function that every runtime can run; "plugin" the node alone, for a
    runtime that has a kernel for it: it is verified with the function, and the model with the function is written
    beside the file, as NAME.reference.onnx. Tensors are the node's inputs, everything else its attributes.

    Raises:
        OnnxsmithError: `register/unknown-operator`; `register/signature` when the translation does not take what the
            operator is called with; `register/delivery` for an unknown way to deliver.
    """
    if translation is None:
        return lambda function: register(target, function, deliver=deliver, domain=domain, name=name) and function
    if deliver not in DELIVERIES:
        raise problem(
            "register/delivery", f"nothing is delivered as {deliver!r}", fix=f"one of: {', '.join(DELIVERIES)}"
        )
    signature = _signature(target)
    _check(target, signature, translation)
    own = target.__name__ if isinstance(target, type) else target.partition("::")[2].partition(".")[0]

    @functools.wraps(translation)
    def complete(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return translation(*bound.args, **bound.kwargs)

    made = Registration(target, complete, deliver, domain, name or own, signature)
    if isinstance(target, str):
        _give_fake(target, complete)
    _known[target] = made
    return made


def _signature(target: str | type[torch.autograd.Function]) -> inspect.Signature:
    """The arguments of the operator, by name, in the order of a call."""
    if isinstance(target, type):
        parameters = list(inspect.signature(target.forward).parameters.values())
        with_context = target.setup_context is torch.autograd.Function.setup_context
        return inspect.Signature(parameters[1:] if with_context else parameters)
    found = list(overloads(target))
    if not found:
        raise problem(
            "register/unknown-operator",
            f"PyTorch has no operator {target!r}",
            fix="import the package that defines it first, and name it as torch.library does: namespace::name",
        )
    kinds = inspect.Parameter
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                kinds.KEYWORD_ONLY if argument.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
                default=argument.default_value if argument.has_default_value() else kinds.empty,
                annotation=str(argument.type),
            )
            for argument in operators.schema(found[0]).arguments
        ]
    )


def _check(target: Any, signature: inspect.Signature, translation: Callable[..., Any]) -> None:
    own = inspect.signature(translation)
    values = list(signature.parameters.values())
    positional = [None for one in values if one.kind != one.KEYWORD_ONLY]
    named: dict[str, Any] = {one.name: None for one in values if one.kind == one.KEYWORD_ONLY}
    if any(one.kind == one.VAR_POSITIONAL for one in values):
        return
    try:
        own.bind(*positional, **named)
        for one in values:
            if one.kind == one.POSITIONAL_OR_KEYWORD and one.name in own.parameters:
                place = list(own.parameters).index(one.name)
                if place != list(signature.parameters).index(one.name):
                    raise TypeError(f"{one.name!r} is argument {place} of the translation, and not of the operator")
    except TypeError as error:
        raise problem(
            "register/signature",
            "the translation does not take what the operator is called with",
            where=f"{_name(translation)}{own}",
            why=f"the operator is {target if isinstance(target, str) else target.__qualname__}{signature}; {error}",
            fix="give the translation the same arguments, in the same order",
        ) from error


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _give_fake(target: str, translation: Callable[..., Any]) -> None:
    """Tracing asks an operator for the shapes of its results; one that does not say gets them from the translation."""
    for op in overloads(target):
        if op.namespace not in ("aten", "prims") and not operators.says_shapes(op):
            torch.library.register_fake(str(op).removesuffix(".default").replace(".", "::", 1), translation)
