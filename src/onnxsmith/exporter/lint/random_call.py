"""Finds calls that draw random numbers: `torch.rand_like(x)`, `F.dropout(x)` without training=self.training, and
others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Weight
from onnxsmith.exporter.lint import _argument_lifting
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_DRAWS = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "multinomial",
        "normal",
    ]
)
_DRAWS_IN_PLACE = frozenset(
    ["normal_", "uniform_", "bernoulli_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_"]
)
_DROPS = frozenset(["dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "rrelu"])

HELD = (
    "a graph draws different numbers from torch, and new numbers in every run; for results that depend on these "
    "numbers, the verification compares dtype and shape and checks that the values change, but does not compare the "
    "values"
)
"""Says the effect of random numbers on an export."""


class RandomCall(Check):
    """Finds calls whose numbers differ between calls and between runtimes."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        live = code.flow.live(node.func)
        home = str(getattr(live, "__module__", "") or "").partition(".")[0]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else str(getattr(live, "__name__", ""))
        method = isinstance(node.func, ast.Attribute) and code.flow.kind(node.func.value) is Kind.TENSOR
        if isinstance(live, torch.nn.Module):
            return  # an exported module is in evaluation mode, where nn.Dropout drops nothing
        if name in _DROPS and home == "torch":
            new = self._with_training(node, code)
            if new is None:
                return
            yield self._remark(node, "pass training=self.training, which is False in an export", {node: new})
        elif (name in _DRAWS and (method or self._is_torchs(live))) or (name in _DRAWS_IN_PLACE and method):
            argument = next(n for n in ("noise", "drawn", "noise_drawn") if not _argument_lifting.taken(code, n))
            lifted: dict[ast.AST, New] = {}
            if code.is_root and name in _DRAWS:
                lifted = {**_argument_lifting.argument(code, argument), node: ast.Name(argument)}
            fix = (
                f"pass the random numbers as an input: add a last argument {argument} to forward, for example "
                f"{ast.unparse(node)}"
            )
            if any(code.arguments.values()):
                fix += f", and name its dynamic axes too, as {argument}:AXIS=NAME"
            yield self._remark(node, fix, lifted)

    def _is_torchs(self, live: object) -> bool:
        return type(live).__name__ == "builtin_function_or_method" or str(getattr(live, "__module__", "")).startswith(
            "torch"
        )

    def _with_training(self, node: ast.Call, code: Code) -> ast.Call | None:
        given = next((word.value for word in node.keywords if word.arg == "training"), None)
        if given is None and len(node.args) > 2:
            given = node.args[2]
        live = code.flow.live(given) if given is not None else True
        if live is not True:
            return None
        own = code.flow.function.args.args[0].arg if code.flow.function.args.args else "self"
        words = [word for word in node.keywords if word.arg != "training"]
        words.append(ast.keyword("training", ast.Attribute(ast.Name(own), "training")))
        return ast.Call(node.func, node.args[:2], words)

    def _remark(self, node: ast.Call, fix: str, swaps: dict[ast.AST, New]) -> Remark:
        return Remark(
            Problem(
                "forward/random",
                f"forward draws random numbers: {ast.unparse(node)}",
                why=HELD,
                fix=fix,
            ),
            node,
            weight=Weight.NOTE,
            swaps=swaps,
            same=False,
        )
