"""Decides whether a loop is one over blocks, whose number of turns depends on a size, and makes its patch."""

from __future__ import annotations

import ast
from collections.abc import Set
from dataclasses import replace

from onnxsmith.exporter.lint import (
    _block_body,
    _block_branches,
    _block_lists,
    _block_loops,
    _block_states,
    _block_turns,
    _list_pieces,
)
from onnxsmith.exporter.lint._axis_loops import may_scan_nothing, over_axis
from onnxsmith.exporter.lint._block_lists import Joined
from onnxsmith.exporter.lint._block_states import Carried
from onnxsmith.exporter.lint._counting_loops import counted, tested
from onnxsmith.exporter.lint._name_binding import following
from onnxsmith.exporter.lint._options import without_options
from onnxsmith.exporter.lint._syntax import expression, fresh
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code, New

Swaps = dict[ast.AST, New]


def of_for(node: ast.For, code: Code) -> Swaps | None:
    """Returns the patch of a `for`. Empty if the loop does more than a graph can compute. None if it is not a loop over
    blocks, or is one over rows, for which another check has a patch."""
    if code.flow.kind(node.iter) not in (Kind.SIZE, Kind.MANY, Kind.TENSOR, Kind.SHAPE):
        return None
    turns = _block_turns.turns_of(node.target, node.iter, code)
    if turns is None or over_axis_works(node, code):
        return None
    swaps = _patch(node, node.body, turns, code)
    if turns.removed is None or not swaps:
        return swaps or {}
    return {**swaps, turns.removed: []} if turns.removed in code.block(node) else {}


def of_while(node: ast.While, code: Code) -> Swaps | None:
    """Returns the patch of a `while`. Empty if the loop does more than a graph can compute. None if its test is not on
    sizes."""
    if code.flow.kind(node.test) is not Kind.SIZE:
        return None
    turns = counted(node, code)
    swaps = _patch(node, node.body, turns, code) if turns is not None else None
    if swaps is None and code.torch:
        # a loop that does not count up by one step keeps its test
        swaps = _patch(node, node.body, tested(node, code), code)
    return swaps or {}


def over_axis_works(node: ast.For, code: Code) -> bool:
    """Whether the loop goes over rows of tensors, and the check of such loops has a patch for it."""
    if code.flow.kind(node.iter) not in (Kind.TENSOR, Kind.SIZE) or not code.torch:
        return False
    found = over_axis(node, code)
    return found is not None and not may_scan_nothing(node, found)


def _patch(loop: ast.For | ast.While, lines: list[ast.stmt], turns: _block_turns.Turns, code: Code) -> Swaps | None:
    body, ends = without_options(lines, code), dict(turns.last)
    body = _block_branches.in_every_turn(_block_branches.without_continue(body), ends)
    if not code.torch or loop.orelse or _block_body.leaves(body) or _block_turns.TURN in _taken(code):
        return None
    body, lasts = _list_pieces.last_read(body, dict(turns.index), loop, code)
    lists = _block_lists.lists_of(loop, body, code)
    if lists is None:
        return None
    body = _list_pieces.with_last(_block_lists.appending(body), lasts)
    body, grown = _block_lists.grown(body, code.torch, code)
    lists = {**lists, **grown}
    filled = {name for name in lists if _list_pieces.is_filled(name, loop, code)}
    taken = _taken(code)
    body, asks = _block_body.without_first(body, turns.index, lists.keys() - filled, fresh("is_first", taken))
    starts = {f"{name}_last": f"{name}[-1]" for name in lasts if name in filled}
    scope = _block_states.Scope(loop, body, frozenset(name for name, _ in turns.index) | _bound(loop), code, starts)
    states = scope.states(lists, begins=asks)
    # With a test the number of turns is unknown, and with it the length of a list. Without a carried number the test
    # never changes.
    if states is None or (turns.test and (lists or Carried.NUMBER not in states.values())):
        return None
    made = _block_loops.Loop(
        replace(turns, before=[*turns.before, *starts.items()]),
        _traceable(body, scope, {name for name, how in states.items() if how is Carried.NUMBER}, code),
        states,
        lists,
        _block_states.mutated(body, {name for name, how in states.items() if how is Carried.TENSOR}),
        scope.read,
        asks,
        code.torch,
        taken,
        scope.unbound(states),
        scope.mappings,
    )
    swaps: Swaps = {loop: _block_loops.patch(made)}
    return swaps | _joined(made) | {old: new for joined in lists.values() for old, new in joined.swaps.items()}


def _traceable(body: list[ast.stmt], scope: _block_states.Scope, counts: Set[str], code: Code) -> list[ast.stmt]:
    """Returns the lines of a turn so that torch can trace them for every number of the turn. `counts` are the states
    that are numbers."""
    lines = _block_body.extremes(_block_body.always_padded(body, code), code.torch, code)
    numbers = following(body, scope.bound | counts)
    lines = _block_branches.Choosing(numbers, scope.known, code, code.torch).lines(lines)
    return _block_body.selected(lines, scope.bound | scope.stored, code)


def _joined(made: _block_loops.Loop) -> Swaps:
    """Returns replacements for the expressions that read a list which became one tensor."""
    return {
        node: expression(text.format(_block_loops.whole(made, name)))
        for name, joined in made.lists.items()
        for node, text in joined.reads
    }


def _bound(loop: ast.For | ast.While) -> frozenset[str]:
    target = loop.target if isinstance(loop, ast.For) else ast.Tuple([])
    return frozenset(one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _taken(code: Code) -> frozenset[str]:
    nodes = list(ast.walk(code.flow.function))
    names = {one.id for one in nodes if isinstance(one, ast.Name)}
    return frozenset(names | {one.arg for one in nodes if isinstance(one, ast.arg)})


def of_comprehension(node: ast.ListComp, code: Code) -> Swaps | None:
    """Returns the patch of `torch.cat([f(c) for c in x.split(8, 1)], 1)`, and of such a list with a name."""
    if len(node.generators) != 1 or code.flow.kind(node.generators[0].iter) not in (Kind.MANY, Kind.TENSOR, Kind.SIZE):
        return None
    above, statement = code.parents.get(node), code.statement(node)
    turns = _block_turns.turns_of(node.generators[0].target, node.generators[0].iter, code)
    if turns is None or not code.torch or node.generators[0].ifs or _block_turns.TURN in _taken(code):
        return None
    match above:
        case ast.Call(func=ast.Attribute(attr="cat" | "concat" | "stack" as how), args=[first, *_]) if first is node:
            axis = _block_lists.axis_of(above, code)
            if axis is None:
                return None
            joined = Joined("stack" if how == "stack" else "cat", axis)
            name = fresh("parts", _taken(code))
        case ast.Assign(targets=[ast.Name(id=name)]):
            found = _block_lists.joined(name, node, code)
            if found is None:
                return None
            joined = found
        case _:
            return None
    if turns.removed is not None:
        return None
    add = ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [node.elt], []))
    made = _block_loops.Loop(turns, [add], {}, {name: joined}, set(), (), False, code.torch, _taken(code))
    start = ast.Assign([ast.Name(name)], ast.List([]))
    lines = [start, *_block_loops.patch(made)]
    if isinstance(above, ast.Assign):
        return {above: lines, **_joined(made)}
    result = _block_loops.whole(made, name) if joined.how == "stack" else f"{name}[0]"
    return {statement: [*lines, statement], above: expression(result)}
