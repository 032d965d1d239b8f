"""Finds operators without a translation to ONNX, with the user's line, and writes code that registers them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.seams.torch import operators, translator
from onnxsmith.base.seams.torch.tensors import mode_of
from onnxsmith.base.words import pasted
from onnxsmith.exporter.causes._message_text import line_in
from onnxsmith.exporter.causes.exporter_messages import REASONS
from onnxsmith.exporter.factory import is_target, place
from onnxsmith.exporter.translating.program_origin import origins

_SHAPELESS = re.compile(r"no fake impl registered for <CustomOpDef\(([\w.:]+)\)>|([\w.]+::[\w.]+): attempted to run")


@dataclass(frozen=True)
class Missing:
    """An operator in the form of `onnxsmith.register` (`lib::op`), the user's line, and torch's message. `called` is
    the operator in the trace of which a decomposition made it, usually itself."""

    target: str
    where: str
    said: str
    called: str = ""

    @property
    def problem(self) -> Problem:
        """The problem of this operator."""
        return problem_of([self])


class UntranslatedError(OnnxsmithError):
    """The problem of operators that have no translation, whatever the sizes of the inputs are. `called` names the
    operators in the trace, of which another strategy would have to know all."""

    def __init__(self, found: Problem, called: Sequence[str] = ()) -> None:
        super().__init__(found)
        self.called = tuple(called)


_SPARSE = re.compile(r"sparse|^aten::(_?to_dense|_?coalesced?_?|_?(col_)?indices|_?values)$")
"""Matches operators of sparse tensors."""


def problem_of(found: list[Missing]) -> Problem:
    """Makes one problem for all operators, at the line of the first."""
    targets = list(dict.fromkeys(one.target for one in found))
    if any(_SPARSE.search(target) for target in targets):
        return Problem(
            "export/no-translation",
            f"no ONNX translation for {', '.join(targets)}",
            where=found[0].where,
            why="the operator computes with a sparse tensor, but operators of a graph read only dense tensors",
            fix="convert the tensor to a dense tensor where the module is built, self.adjacency = "
            "adjacency.to_dense(), and compute with torch.mm or @",
        )
    reasons = [REASONS[name] for name in (one.replace("::", ".") for one in targets) if name in REASONS]
    return Problem(
        "export/no-translation",
        f"no ONNX translation for {', '.join(targets)}",
        where=found[0].where,
        why=f"{'; '.join(reasons) or found[0].said}; the pull request to PyTorch that torch advises is not necessary",
        fix=f"register a function that computes it with PyTorch's operators, @onnxsmith.register({targets[0]!r}), or "
        "use other operators",
    )


def with_code(error: OnnxsmithError, target: str) -> OnnxsmithError:
    """Adds to the error of operators without a translation how to get the code that registers them. `target` names the
    exported module."""
    if error.problem.id != "export/no-translation" or "onnxsmith.register" not in error.problem.fix:
        return error
    called = f"`onnxsmith diagnose {pasted(target)}`" if is_target(target) else "onnxsmith.diagnose(module, args)"
    said = replace(error.problem, fix=f"{error.problem.fix}; {called} prints its first lines")
    return UntranslatedError(said, error.called) if isinstance(error, UntranslatedError) else OnnxsmithError(said)


def untranslated(exported: ExportedProgram) -> list[Missing]:
    """Returns the operators of the program without a translation, once for each line. Has to be called inside
    `translating`."""
    registry = translator.registry()
    mode = mode_of(node.meta.get("val") for node in exported.graph.nodes)
    if mode is not None and mode.shape_env is not None:  # symbols left by an earlier decomposition would raise
        mode.shape_env.pending_fresh_unbacked_symbols.clear()
    program = translator.decomposed(exported, registry)
    before = {node.name: source for node, source in origins(exported.graph, program.graph)}
    found: dict[tuple[str, str], Missing] = {}
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, operators.OpOverload):
            continue
        function, message = translator.function_for(node, registry)
        target = _name(node)
        if function is None and "_assert" not in target:
            where = line_in(str(node.meta.get("stack_trace", "")))
            said = f"torch found no ONNX function for this operator: {message}"
            found.setdefault((target, where), Missing(target, where, said, _name(before.get(node.name)) or target))
    return list(found.values())


def _name(node: Any) -> str:
    """Returns the name of the operator that a node of a traced program calls; "" for another function or no node."""
    if node is None or node.op != "call_function" or not isinstance(node.target, operators.OpOverload):
        return ""
    return str(node.target.name()).removesuffix(".default")  # type: ignore[no-untyped-call]


def error_of(found: list[Missing], *, translated: Container[str] = ()) -> OnnxsmithError:
    """Returns the error of operators without a translation. It is an `UntranslatedError` if one of them cannot come
    from a translation: `translated` names the operators that this package translates, which other exporters may
    translate otherwise."""
    called = [one.called or one.target for one in found]
    certain = [name for name in called if name not in translated]
    said = problem_of(found)
    return UntranslatedError(said, certain) if certain else OnnxsmithError(said)


def shapeless(error: BaseException | None, where: str) -> list[Missing]:
    """Returns the operator that stopped a trace because it has no fake implementation; empty if the error is
    another."""
    known = _SHAPELESS.search(str(error or ""))
    if known is None:
        return []
    said = "the operator also lacks a fake implementation, from which a trace gets the shapes of the results"
    return [Missing((known[1] or known[2]).removesuffix(".default"), where, said)]


def registrations(targets: list[str], file: str, refused: Mapping[str, str]) -> str:
    """Writes code that registers translations of the operators. An operator whose Python function is in `file` gets a
    copy of the function, if a trace can follow it; others get only the first lines. `refused` says of operators why a
    trace cannot follow their function."""
    codes = (_registration(target, file, refused.get(target, "")) for target in dict.fromkeys(targets))
    return "\n\n\n".join(["import onnxsmith", *codes])


def _registration(target: str, file: str, refused: str) -> str:
    name = re.sub(r"\W", "_", target.partition("::")[2])
    decorator = f'@onnxsmith.register("{target}")'
    advice = "compute it with PyTorch's operators; onnxsmith.onnx_op puts a node of ONNX there"
    written = _source(target, file)
    if written is None:
        arguments = ", ".join(_arguments(target))
        return f'{decorator}\ndef {name}_in_onnx({arguments}):\n    raise NotImplementedError("{advice}")'
    written.name, written.decorator_list = f"{name}_in_onnx", []
    if not refused:
        return f"{decorator}\n{ast.unparse(written)}"
    text = f"compute {target} with functions of torch here: the code of the operator cannot be traced ({refused})"
    written.body = [ast.Raise(ast.Call(ast.Name("NotImplementedError"), [ast.Constant(text)], []))]
    return f"{decorator}\n{ast.unparse(ast.fix_missing_locations(written))}"


def _source(target: str, file: str) -> ast.FunctionDef | None:
    """Finds the Python function from which an operator of torch.library was made, if this file defines it."""
    function: Any = operators.source(target)
    if function is None or inspect.getsourcefile(function) != file:
        return None
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        return None
    return parsed if isinstance(parsed, ast.FunctionDef) else None


def _arguments(target: str) -> Iterator[str]:
    space, _, rest = target.partition("::")
    name, _, overload = rest.partition(".")
    op = getattr(getattr(getattr(torch.ops, space), name), overload or "default")
    keywords = False
    for argument in operators.schema(op).arguments:
        if argument.kwarg_only and not keywords:
            keywords = True
            yield "*"
        yield argument.name


def end_of(where: str) -> tuple[int, int]:
    """Returns the position after the last line of the file in `file:line`, as `first` and `last` of a finding; zeros if
    there is no file."""
    file, _ = place(where)
    try:
        count = len(user_files.read_utf8(Path(file)).splitlines())
    except OSError:
        return 0, 0
    return count + 1, count
