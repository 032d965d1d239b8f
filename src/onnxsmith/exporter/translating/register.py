"""`register`: translates a custom operator to ONNX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch import operators
from onnxsmith.base.seams.torch.operators import OpOverload, OpOverloadPacket
from onnxsmith.exporter.translating.overloads import overloads

Translated = Callable[..., Any]
Target = str | OpOverload[..., Any] | OpOverloadPacket[..., Any] | type[torch.autograd.Function]
DELIVERIES = ("operators", "function", "plugin")


@dataclass(frozen=True)
class Registration:
    """A registered operator, its translation to PyTorch's operators, and its form in the file (`deliver`)."""

    target: Any
    """Is the name of an operator, the class of a function, or a Python function that a trace calls."""
    decompose: Callable[..., Any]
    deliver: str
    domain: str
    name: str
    signature: inspect.Signature
    writers: tuple[Callable[..., Any], ...] = ()
    """Holds functions that write the operator's nodes; empty if `decompose` computes it."""


_known: dict[Any, Registration] = {}


def registered() -> tuple[Registration, ...]:
    """Returns every registration of this process, oldest first."""
    return tuple(_known.values())


def forget(target: Target) -> None:
    """Removes a registration, if there is one."""
    _known.pop(_named(target), None)


def register(
    target: Target,
    translation: Translated | Sequence[Translated] | None = None,
    *,
    deliver: str = "operators",
    domain: str = "custom",
    name: str | None = None,
) -> Any:
    """Registers the translation of an operator, for every export of this process. Also works as a decorator:
    `@register("lib::op")`.

    `target` is an operator of torch.library (`"mylib::scale"`, `"mylib::scale.out"` for one overload), an operator of
    PyTorch (`"aten::special_zeta"`), the operator itself (`torch.ops.mylib.scale`, `torch.ops.mylib.scale.default`), or
    a subclass of `torch.autograd.Function`. `translation` takes the operator's arguments in the same order and computes
    the result with PyTorch's operators; `onnxsmith.onnx_op` adds an ONNX node. It is traced with the shapes and dtypes
    of each call.

    `translation` may also write ONNX nodes, as for torch's exporters: a function of onnxscript, as
    `custom_translation_table` of `torch.onnx.export` takes it; a list of functions, of which the first with fitting
    declared dtypes is called; or a symbolic (`symbolic(g, x)`), as `torch.onnx.register_custom_op_symbolic` took it.

    `deliver` chooses the operator's form in the file. "operators" writes the operators of the translation. "function"
    writes one node `domain::name` and a model-local function, which every runtime can run. "plugin" writes only the
    node, for a runtime with a kernel for it; the verification uses the function, and a second model with the function
    is written as NAME.reference.onnx. Tensors are inputs of the node, all other arguments are attributes.

    Raises:
        OnnxsmithError: `register/unknown-operator`; `register/signature` if the translation's arguments differ from the
            operator's; `register/delivery` if `deliver` is unknown, or does not fit the translation.
    """
    if translation is None:
        return lambda function: register(target, function, deliver=deliver, domain=domain, name=name) and function
    if deliver not in DELIVERIES:
        raise problem(
            "register/delivery", f"deliver={deliver!r} is not a known form", fix=f"one of: {', '.join(DELIVERIES)}"
        )
    target = _named(target)
    signature = _signature(target)
    if writers := _writers(target, signature, translation):
        if deliver != "operators":
            raise _no_function(target, deliver)
        _known[target] = made = _writing(target, signature, writers)
        return made
    if not callable(translation):
        raise _no_translation(target, translation)
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


@contextmanager
def also(table: Mapping[Any, Any] | None) -> Iterator[None]:
    """Registers the translations of the table too in the block, for one export. A plain function in it counts as one of
    onnxscript, as in the table of `torch.onnx.export`.

    Raises:
        OnnxsmithError: those of `register`.
    """
    before = dict(_known)
    try:
        for target, translation in (table or {}).items():
            functions = translation if isinstance(translation, list | tuple) else [translation]
            if isinstance(target, str | OpOverload | OpOverloadPacket | type):
                named = _named(target)
                signature = _signature(named)
                _known[named] = _writing(named, signature, _writers(named, signature, functions, plain=True))
            elif callable(target):  # a Python function in the trace, such as operator.mul
                _known[target] = _writing(target, inspect.Signature(), tuple(functions))
            else:
                _named(target)
        yield
    finally:
        _known.clear()
        _known.update(before)


def _writing(target: Any, signature: inspect.Signature, writers: tuple[Callable[..., Any], ...]) -> Registration:
    own = getattr(target, "__name__", str(target))
    computed = getattr(target, "apply", writers[0])  # a trace computes the results of an autograd function by `apply`
    return Registration(target, computed, "operators", "custom", own, signature, writers)


def _writers(
    target: Any, signature: inspect.Signature, given: Any, *, plain: bool = False
) -> tuple[Callable[..., Any], ...]:
    """Returns the translation as functions that write nodes; empty if it computes the operator with PyTorch's
    operators. With `plain`, an unrecognised function counts as one of onnxscript."""
    functions = list(given) if isinstance(given, list | tuple) else [given]
    if not all(map(callable, functions)) or not functions:
        raise _no_translation(target, given)
    from onnxsmith.exporter.translating import onnx_functions

    if len(functions) == 1 and onnx_functions.is_symbolic(functions[0], len(signature.parameters)):
        _check(target, _with_graph(signature), inspect.unwrap(functions[0]))
        named = target if isinstance(target, str) else target.__qualname__
        return (onnx_functions.as_writer(functions[0], signature, named),)
    if plain or all(map(onnx_functions.is_onnxscript, functions)):
        return tuple(functions)
    if len(functions) > 1:
        raise _no_translation(target, given)
    return ()


def _with_graph(signature: inspect.Signature) -> inspect.Signature:
    """Returns the signature of a symbolic: the graph, then all arguments by position."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = [one if one.kind == one.VAR_POSITIONAL else one.replace(kind=kind) for one in signature.parameters.values()]
    return inspect.Signature([inspect.Parameter("g", inspect.Parameter.POSITIONAL_ONLY), *_renamed(given)])


def _renamed(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Renames the parameters to names that no symbolic uses, because a symbolic may name its arguments differently."""
    return [one.replace(name=f"argument_{at}", default=inspect.Parameter.empty) for at, one in enumerate(parameters)]


def _no_function(target: Any, deliver: str) -> OnnxsmithError:
    return problem(
        "register/delivery",
        f"a translation that writes ONNX nodes cannot be delivered as {deliver}",
        where=str(target),
        why="the nodes of such a translation go into the graph itself; {deliver!r} needs a translation in "
        "PyTorch's operators, which can be traced",
        fix='leave deliver="operators", or give a translation that computes the result with PyTorch\'s operators',
    )


def _no_translation(target: Any, given: Any) -> OnnxsmithError:
    return problem(
        "register/signature",
        f"{given!r} is no translation",
        where=str(target),
        why="a translation has to be a function; only functions of onnxscript can be given as a list",
        fix="give a function of the operator's arguments, such as lambda x: x * 2",
    )


def _named(target: Target) -> str | type[torch.autograd.Function]:
    """Returns the name of an operator object; a name or an autograd function is returned unchanged.

    Raises:
        OnnxsmithError: `register/unknown-operator` for an object that is no operator.
    """
    if isinstance(target, OpOverload):
        return f"{target.namespace}::{str(target).partition('.')[2]}"
    if isinstance(target, OpOverloadPacket):
        return str(target).replace(".", "::", 1)
    is_function = isinstance(target, type) and issubclass(target, torch.autograd.Function)
    if isinstance(target, str) or is_function:
        return target
    raise problem(
        "register/unknown-operator",
        f"{target!r} is no operator",
        fix='give the name of the operator ("mylib::scale"), the operator itself (torch.ops.mylib.scale) or a '
        "torch.autograd.Function",
    )


def _signature(target: str | type[torch.autograd.Function]) -> inspect.Signature:
    """Returns the signature of the operator."""
    if isinstance(target, type):
        parameters = list(inspect.signature(target.forward).parameters.values())
        with_context = target.setup_context is torch.autograd.Function.setup_context
        return inspect.Signature(parameters[1:] if with_context else parameters)
    found = list(overloads(target))
    if not found:
        raise problem(
            "register/unknown-operator",
            f"PyTorch has no operator {target!r}",
            fix=_near(target)
            or "import the package that defines the operator first, and write its name as namespace::name",
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
                    raise TypeError(
                        f"argument {place} of the translation is {one.name!r}, but not that of the operator"
                    )
    except TypeError as error:
        raise problem(
            "register/signature",
            "the translation's arguments differ from the operator's",
            where=f"{_name(translation)}{own}",
            why=f"the operator is {target if isinstance(target, str) else target.__qualname__}{signature}; {error}",
            fix=f"give the translation the operator's arguments: lambda {_arguments(values)}: …",
        ) from error


def _arguments(parameters: Sequence[inspect.Parameter]) -> str:
    """Returns the arguments of a function as they are written, without annotations and defaults."""
    found: list[str] = []
    for one in parameters:
        if one.kind == one.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(one.name)
    return ", ".join(found)


def _near(name: str) -> str:
    """Returns the advice to write the name of an operator that PyTorch has; nothing if none is similar."""
    found = near_names(name, operators.names(), 3)
    if not found:
        return ""
    return f"write {' or '.join(map(repr, found))}; or import the package that defines {name!r} first"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _give_fake(target: str, translation: Callable[..., Any]) -> None:
    """Registers the translation as the operator's fake implementation if the operator has none: a trace needs the
    shapes of its results."""
    for op in overloads(target):
        if op.namespace not in ("aten", "prims") and not operators.says_shapes(op):
            torch.library.register_fake(str(op).removesuffix(".default").replace(".", "::", 1), translation)
