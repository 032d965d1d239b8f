"""Replaces lines at which a trace stops by the linter's patches, while the module is traced.

A patch of the linter for a branch or a loop (torch.where, torch.while_loop, scan, vmap) computes the same as the lines
that it replaces. Inside a block, the model's functions run the patched code; at its end they get their own code back.
The captured graph is compared with the unchanged module.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from onnxsmith.base.seams.base import alone
from onnxsmith.exporter.factory import TorchModel, is_models, place
from onnxsmith.exporter.lint._patch import Patch, rebuilt
from onnxsmith.exporter.lint.base import Code, New
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import observe
from onnxsmith.runtimes.torch_eager import TorchProgram


@dataclass
class Lines:
    """The lines of a model that have a patch. `notes` names the patches that were applied."""

    patches: list[tuple[Code, str, Patch]]
    """Holds each patch with its function and the id of the linter's problem."""
    notes: list[str] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _done: dict[FunctionType, dict[ast.AST, New]] = field(default_factory=dict)

    def patch(self, where: str, problem: str = "") -> bool:
        """Patches the statement at `file:line`, for this problem id if there is one. False if it has no patch, or was
        patched before."""
        file, line = place(where)
        # torch's messages leave out the folder of installed packages.
        mine = ((c, one, p) for c, one, p in self.patches if c.file == file or c.file.endswith(f"/{file}"))
        here = ((c, one, p) for c, one, p in mine if p.first <= line <= p.last)
        found = ((code, patch) for code, one, patch in here if not problem or one == problem)
        return any(self._write(code, patch) for code, patch in found)

    def patch_all(self, problem: str) -> bool:
        """Patches every statement for which the linter reports this problem id. False if nothing was patched."""
        # A list: `any` of a generator would stop at the first patch.
        return any([self._write(code, patch) for code, one, patch in self.patches if one == problem])  # noqa: C419

    def _write(self, code: Code, patch: Patch) -> bool:
        done = self._done.setdefault(code.function, {})
        if patch.swaps.keys() <= done.keys():
            return False
        made = compiled(code, {**done, **patch.swaps})
        if made is None:
            return False
        done.update(patch.swaps)
        self._put(code.function, made)
        text = patch.text
        shown = f"\n{text}" if "\n" in text else f" {text.strip()}"
        self.notes.append(f"{code.file}:{patch.first} was traced as:{shown}")
        return True

    def _put(self, function: FunctionType, code: CodeType) -> None:
        old = function.__code__
        function.__code__ = code
        self._stack.callback(setattr, function, "__code__", old)


@contextmanager
def recomposing(program: TorchProgram, example: Mapping[str, Any]) -> Iterator[Lines]:
    """Lets lines of the model be patched in the block. Reads the source and runs the module once."""
    args, kwargs = program.arguments(example)
    seen = observe(TorchModel(program.module, args, kwargs))
    found = source_linting.patched(
        program.module, seen.calls, lambda file: is_models(file) and Path(file).suffix == ".py"
    )
    lines = Lines([(code, remark.problem.id, patch) for code, remark, patch in found if remark.same])
    with alone(), lines._stack:  # other threads may call the same functions
        yield lines


def compiled(code: Code, swaps: Mapping[ast.AST, New]) -> CodeType | None:
    """Compiles the function with the swapped statements; None if the code does not fit the function object."""
    function = code.function
    made = rebuilt(code.flow.function, swaps)
    if not isinstance(made, ast.FunctionDef) or any(isinstance(new, ast.arguments) for new in swaps.values()):
        return None
    made.decorator_list = []
    body: ast.stmt = made
    owner = function.__qualname__.split(".")[-2:-1]
    if owner and owner != ["<locals>"]:  # Python mangles names with two underscores by the class around them
        body = ast.ClassDef(owner[0], [], [], [made], [])
    # Arguments of an outer function make the compiler treat these names as free variables, as in the original.
    free = [ast.arg(name) for name in function.__code__.co_freevars if name != "__class__"]
    holder = ast.FunctionDef("holder", ast.arguments([], free, None, [], [], None, []), [body], [])
    tree = ast.fix_missing_locations(_completed(ast.Module([holder], [])))
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    try:
        whole = compile(tree, code.file, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    found = next((one for one in _codes(whole) if one.co_name == made.name), None)
    return found if found is not None and found.co_freevars == function.__code__.co_freevars else None


def _completed(tree: ast.Module) -> ast.Module:
    """Fills in the fields that a parser sets and hand-made nodes lack: `ctx` and `type_params`."""
    for node in ast.walk(tree):
        if "type_params" in node._fields and not hasattr(node, "type_params"):
            node.type_params = []  # type: ignore[attr-defined]  # from Python 3.12
        if "ctx" in node._fields:
            node.ctx = ast.Load()  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        for name in ("targets", "target", "optional_vars"):
            found = getattr(node, name, None)
            for target in found if isinstance(found, list) else [found]:
                if isinstance(target, ast.AST):
                    _bind(target, ast.Del() if isinstance(node, ast.Delete) else ast.Store())
    return tree


def _bind(target: ast.AST, how: ast.expr_context) -> None:
    if "ctx" in target._fields:
        target.ctx = how  # type: ignore[attr-defined]
    for part in getattr(target, "elts", []):
        _bind(part, how)
    if isinstance(target, ast.Starred):
        _bind(target.value, how)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields the code object and all code objects inside it, outer ones first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
