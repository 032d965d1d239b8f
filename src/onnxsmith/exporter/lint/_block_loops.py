"""Patches for loops whose number of turns depends on a size: they become torch.while_loop.

A turn becomes a function of its number and of the carried values; its lines stay as they are. A list that the turns
append to becomes a tensor that the turns write to. A first call of the function gives the length of this tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from onnxsmith.exporter.lint._block_lists import Joined
from onnxsmith.exporter.lint._block_states import Carried
from onnxsmith.exporter.lint._block_turns import TURN, Turns
from onnxsmith.exporter.lint._syntax import fresh, written

_FROM_NONE = (Carried.FROM_NONE, Carried.SEVERAL_FROM_NONE, Carried.FLAG)
_SEVERAL = (Carried.SEVERAL, Carried.SEVERAL_FROM_NONE)


@dataclass(frozen=True)
class Loop:
    """A loop over blocks.

    `body` are the lines of a turn, in which `is_first` stands for "this is the first turn" if `asks_first`. `mutated`
    are the names that a turn writes to in place, `read` the tensors that it only reads. `taken` are all names of the
    function, `unbound` the states that only the first turn binds, `mappings` the names of dicts.
    """

    turns: Turns
    body: Sequence[ast.stmt]
    states: dict[str, Carried]
    lists: dict[str, Joined]
    mutated: set[str]
    read: Sequence[str]
    asks_first: bool
    torch: str
    taken: frozenset[str]
    unbound: Sequence[str] = ()
    mappings: Set[str] = frozenset()
    own: dict[str, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        """Returns a name for the patch that the function does not use."""
        return self.own.setdefault(name, fresh(name, self.taken))

    @property
    def peels(self) -> bool:
        """Whether the first turn runs before the loop, because it differs from the others."""
        return self.asks_first or any(how in _FROM_NONE for how in self.states.values())

    @property
    def needs_first(self) -> bool:
        """Whether the shapes of the first turn's results are needed before the loop."""
        started = {Carried.FROM_NUMBER, Carried.LEFT}
        return self.peels or bool(self.lists) or any(how in started for how in self.states.values())

    @property
    def given(self) -> list[str]:
        """The names that a turn reads."""
        return [name for name, how in self.states.items() if how is not Carried.LEFT]

    @property
    def results(self) -> list[str]:
        """The names that a turn returns, then the lists."""
        return [*self.states, *self.lists]


def patch(loop: Loop) -> list[ast.stmt]:
    """Returns the statements that replace the loop. The lists become tensors `NAME_whole`."""
    return [*_start(loop), *_block(loop), *_first(loop), *_turn(loop), *_call(loop), *_end(loop)]


def whole(loop: Loop, name: str) -> str:
    """Returns the name of the tensor that a list becomes."""
    return loop.name(f"{name}_whole")


def _start(loop: Loop) -> list[ast.stmt]:
    # torch.while_loop rejects tensors of the outer function that share memory, and passes on unusual strides.
    lines = [f"{name} = {_own(loop, name)}" for name in loop.read]
    lines += [f"{name} = None" for name in loop.unbound]
    lines += [f"{target} = {value}" for target, value in loop.turns.before]
    counts = [] if loop.turns.test else [f"{loop.name('count')} = {loop.turns.count}"]
    return written("\n".join([*lines, *counts])) if lines or counts else []


def _block(loop: Loop) -> list[ast.stmt]:
    """Returns the function of one turn."""
    extra = [loop.name("is_first")] if loop.asks_first else []
    lines = [f"def {loop.name('block')}({', '.join([TURN, *extra, *loop.given])}):"]
    lines += [f"    {name} = {_writable(loop, name)}" for name in loop.given if name in loop.mutated]
    lines += [f"    {target} = {value}" for target, value in loop.turns.bound]
    lines += [f"    {name} = []" for name in loop.lists]
    given = [*loop.states, *(_part(loop, name) for name in loop.lists)]
    lines += [f"    return {_tuple(given)}"]
    (made,) = written("\n".join(lines))
    assert isinstance(made, ast.FunctionDef)
    made.body[-1:-1] = loop.body
    return [made]


def _writable(loop: Loop, name: str) -> str:
    """Copies a tensor, or a container and its tensors, so that a turn may write to it."""
    if loop.states[name] not in _SEVERAL:
        return f"{name}.clone()"
    return _each(loop, name if name in loop.mappings else f"list({name})", "one.clone()")


def _each(loop: Loop, container: str, copy: str) -> str:
    """Returns a container with copies of its tensors `one`, also of those in inner containers."""
    return f"{loop.torch}.utils._pytree.tree_map(lambda one: {copy}, {container})"


def _part(loop: Loop, name: str) -> str:
    joined = loop.lists[name]
    return f"{loop.torch}.{joined.how}({name}, {joined.axis})"


def _first(loop: Loop) -> list[ast.stmt]:
    """Returns the call of the first turn, and the tensors that the lists become."""
    if not loop.needs_first:
        return []
    first = {name: loop.name(f"{name}_first") for name in loop.results}
    zero = loop.name("zero")
    extra = ["True"] if loop.asks_first else []
    lines = [
        # A number unknown to torch, not a literal 0: the shapes have to hold for every turn.
        f"{zero} = {loop.torch}.zeros((), dtype={loop.torch}.int64).item()",
        f"{loop.torch}._check({zero} >= 0)",
        *([] if loop.turns.test else [f"{loop.torch}._check({zero} < {loop.name('count')})"]),
        f"{_tuple(list(first.values()))} = {loop.name('block')}({', '.join([zero, *extra, *loop.given])})",
    ]
    for name, joined in loop.lists.items():
        shape, start = loop.name(f"{name}_shape"), whole(loop, name)
        lines += [
            f"{shape} = list({first[name]}.shape)",
            *_length(loop, name, f"{shape}[{joined.axis}]"),
            f"{start} = {first[name]}.new_zeros({shape})",
        ]
        if loop.peels:
            length = f"{first[name]}.shape[{joined.axis}]"
            lines += [f"{start} = {start}.slice_scatter({first[name]}, {joined.axis}, 0, {length})"]
    return written("\n".join(lines))


def _length(loop: Loop, name: str, size: str) -> list[str]:
    """Multiplies the size of the first part by the number of turns, which is the size of all parts.

    For parts of different sizes, the product becomes an integer of its own for torch: torch 2.14 finds the strides of
    carried tensors by the name of such an integer.
    """
    product = f"{size} * {loop.name('count')}"
    if loop.lists[name].how == "stack":
        return [f"{size} = {product}"]
    length = loop.name(f"{name}_length")
    return [
        f"{length} = {loop.torch}.full((), {product}, dtype={loop.torch}.int64).item()",
        f"{loop.torch}._check({length} >= {size})",
        f"{size} = {length}",
    ]


def _turn(loop: Loop) -> list[ast.stmt]:
    """Returns the two functions that torch.while_loop takes."""
    torch, turn, at = loop.torch, loop.name("turn"), loop.name("at")
    carried = [at, *_carried(loop)]
    test = loop.turns.test or f"{at} < {loop.name('count')}"
    lines = [
        f"def {loop.name('goes_on')}({', '.join(carried)}):",
        f"    return {test}",
        f"def {turn}({', '.join(carried)}):",
        f"    {TURN} = {at}.item()",
        f"    {torch}._check({TURN} >= 0)",
    ]
    if not loop.turns.test:
        lines += [f"    {torch}._check({TURN} < {loop.name('count')})"]
    for name in loop.given:
        if loop.states[name] is Carried.NUMBER:
            lines += [f"    {name} = {name}.item()", f"    {torch}._check({name} >= 0)"]
    extra = ["False"] if loop.asks_first else []
    parts = {name: loop.name(f"{name}_part") for name in loop.lists}
    given = [loop.name(f"{name}_first") if loop.states[name] is Carried.FLAG else name for name in loop.given]
    call = f"{loop.name('block')}({', '.join([TURN, *extra, *given])})"
    lines += [f"    {_tuple([*loop.states, *parts.values()])} = {call}"]
    for name, part in parts.items():
        axis, end, start = loop.lists[name].axis, loop.name(f"{name}_end"), loop.name(f"{name}_at")
        large = whole(loop, name)
        lines += [
            f"    {start} = {end}.item()",
            f"    {torch}._check({start} >= 0)",
            f"    {torch}._check({start} + {part}.shape[{axis}] <= {large}.shape[{axis}])",
            f"    {large} = {large}.slice_scatter({part}, {axis}, {start}, {start} + {part}.shape[{axis}])",
            f"    {end} = {end} + {part}.shape[{axis}]",
        ]
    lines += [f"    return {_tuple([f'{at} + 1', *(_kept(loop, name) for name in _moved(loop)), *_ends(loop)])}"]
    return written("\n".join(lines))


def _carried(loop: Loop) -> list[str]:
    return [*_moved(loop), *_ends(loop)]


def _moved(loop: Loop) -> list[str]:
    """Returns the states that change from turn to turn."""
    return [name for name, how in loop.states.items() if how is not Carried.FLAG]


def _ends(loop: Loop) -> list[str]:
    return [one for name in loop.lists for one in (loop.name(f"{name}_end"), whole(loop, name))]


def _kept(loop: Loop, name: str, value: str = "") -> str:
    """Returns a state as the result of a turn. torch.while_loop rejects results that share memory, or whose strides
    differ from those of the input."""
    value = value or name
    how = loop.states[name]
    if how is Carried.NUMBER:
        return f"{loop.torch}.full((), {value}, dtype={loop.torch}.int64)"
    if how in _SEVERAL:
        return _each(loop, value if name in loop.mappings else f"tuple({value})", _own(loop, "one"))
    return _own(loop, value)


def _own(loop: Loop, name: str) -> str:
    """Copies a tensor with the strides of a new tensor."""
    return f"{name}.clone(memory_format={loop.torch}.contiguous_format)"


def _call(loop: Loop) -> list[ast.stmt]:
    torch = loop.torch
    starts = [f"{torch}.full((), {int(loop.peels)}, dtype={torch}.int64)"]
    for name in _moved(loop):
        first, how = loop.own.get(f"{name}_first", ""), loop.states[name]
        if loop.peels:
            starts.append(_kept(loop, name, first))
        elif how is Carried.FROM_NUMBER:
            starts.append(f"{torch}.full_like({first}, {name})")
        elif how is Carried.LEFT:
            starts.append(f"{torch}.zeros_like({first})")
        else:
            starts.append(_kept(loop, name))
    for name, joined in loop.lists.items():
        length = f"{loop.own[f'{name}_first']}.shape[{joined.axis}]" if loop.peels else "0"
        starts += [f"{torch}.full((), {length}, dtype={torch}.int64)", whole(loop, name)]
    call = f"{torch}.while_loop({loop.name('goes_on')}, {loop.name('turn')}, {_tuple(starts)})"
    return written(f"{_tuple([loop.name('at'), *_carried(loop)])} = {call}")


def _end(loop: Loop) -> list[ast.stmt]:
    """Returns the lines that give numbers and lists their values after the loop."""
    torch = loop.torch
    lines = []
    for name, how in loop.states.items():
        if how is Carried.NUMBER:
            lines += [f"{name} = {name}.item()", f"{torch}._check({name} >= 0)"]
        if how is Carried.FLAG:
            lines.append(f"{name} = {loop.name(f'{name}_first')}")
        if how in _SEVERAL and name in loop.mutated - loop.mappings:
            lines.append(f"{name} = list({name})")
    for name, joined in loop.lists.items():
        axis = joined.axis
        if joined.flipped:
            lines.append(f"{whole(loop, name)} = {whole(loop, name)}.flip({axis})")
        if joined.pieces:
            lines.append(f"{name} = [*(one.unsqueeze({axis}) for one in {name}), {whole(loop, name)}]")
        if joined.how == "stack":
            continue
        end, large = loop.name(f"{name}_end"), whole(loop, name)
        lines += [
            f"{end} = {end}.item()",
            f"{torch}._check({end} >= 0)",
            f"{torch}._check({end} <= {large}.shape[{joined.axis}])",
        ]
        part = f"{large}.narrow({joined.axis}, 0, {end})"
        is_grown = joined.grown
        lines += [f"{name} = {torch}.cat([{name}, {part}], {joined.axis})" if is_grown else f"{name}.append({part})"]
    return written("\n".join(lines)) if lines else []


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
