"""Writes sizes as products: a dimension is a tuple of factors in memory order, each a number or a symbol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir


@dataclass(frozen=True, eq=False)
class Atom:
    """Describes a symbolic size. `size` is its size in the original, and `value.shape[axis]` holds the size at run
    time. If it was symbolic in the original, too, `was_open` is set, and `size` is a number that nothing else has. If
    it is a part of another size, it is `base` divided by `over`."""

    text: str
    size: int
    value: ir.Value
    axis: int
    was_open: bool = False
    base: Atom | None = None
    over: int = 1

    def part(self, size: int) -> Atom:
        """Returns the number of equal parts, `size` in the original, into which this size is divided."""
        over = self.size // size
        return Atom(f"(({self.text})//{over})", size, self.value, self.axis, self.was_open, self, over)


Factor = int | Atom
Dim = tuple[Factor, ...]


def size(dim: Dim) -> int:
    """Returns the size of a dimension in the original."""
    return math.prod(factor if isinstance(factor, int) else factor.size for factor in dim)


def is_open(dim: Dim) -> bool:
    """Whether a dimension is symbolic now, and was not in the original."""
    return any(isinstance(factor, Atom) and not factor.was_open for factor in dim)


def is_symbolic(dim: Dim) -> bool:
    """Whether a dimension is symbolic."""
    return any(isinstance(factor, Atom) for factor in dim)


def text(dim: Dim) -> str:
    """Returns the dimension as an expression: `12*batch`."""
    number = math.prod(factor for factor in dim if isinstance(factor, int))
    atoms = [factor.text for factor in dim if isinstance(factor, Atom)]
    named = [f"({one})" if not one.replace("_", "a").replace(".", "a").isalnum() else one for one in atoms]
    if len(atoms) == 1 and number == 1:
        return atoms[0]
    return "*".join([*([str(number)] if number != 1 else []), *named])


def as_dim(dim: Dim) -> int | ir.SymbolicDim:
    """Returns the dimension in the form that a shape holds."""
    return ir.SymbolicDim(text(dim)) if is_symbolic(dim) else size(dim)


def redistributed(dims: Sequence[Dim], sizes: Sequence[int], *, late: bool = False) -> list[Dim] | None:
    """Distributes the factors of `dims`, in memory order, over dimensions of the given sizes, as a Reshape does.
    Returns None if a symbol would have to be divided. A symbol s of size 1 fits in several places. Such a symbol takes
    a target dimension of size 1 if there is such a dimension. If the dimension behind it is divided, it joins the first
    part, as the batch joins the heads of an attention: (L, s, H·E) → (L, H, E) becomes (L, s·H, E). Else it joins the
    dimension before it: (L, s, E) → (L, E) becomes (L·s, E). Of several target dimensions of size 1 in a row it takes
    the first, or with `late` the last: (s, E) → (1, 1, E) becomes (s, 1, E) or (1, s, E). A symbol that is divided
    has parts of fixed size, as windows have: (s, E) → (6, 4, E) with s = 24 becomes (s / 4, 4, E)."""
    left = _merged(dims)
    if any(isinstance(factor, int) and factor == 0 for factor in left) or 0 in sizes:
        return None
    found: list[Dim] = []
    for index, need in enumerate(sizes):
        then = next(iter(sizes[index + 1 :]), None)
        if late and need == then == 1:
            found.append((1,))
            continue
        taken = _take(left, need, then)
        if taken is None:
            return None
        found.append(taken)
    if any(isinstance(factor, int) or factor.size != 1 for factor in left) or (left and not found):
        return None
    if left:
        found[-1] = (*found[-1], *left)
    return found


def _merged(dims: Sequence[Dim]) -> list[Factor]:
    """Returns the factors in memory order, with neighbouring numbers multiplied, and the parts of a size joined."""
    flat: list[Factor] = []
    for factor in (factor for dim in dims for factor in dim if factor != 1):
        last = flat[-1] if flat else None
        if isinstance(factor, int) and isinstance(last, Atom) and last.base is not None and factor % last.over == 0:
            flat[-1] = last.base
            flat += [factor // last.over] if factor > last.over else []
        elif isinstance(factor, int) and isinstance(last, int):
            flat[-1] = last * factor
        else:
            flat.append(factor)
    return flat


def _take(left: list[Factor], need: int, then: int | None) -> Dim | None:
    """Removes factors with the product `need` from the front of `left` and returns them; None if no factors have this
    product. `then` is the size of the next dimension. A symbol of size 1 is left for it if it is 1, or a part of the
    number behind the symbol."""
    taken: list[Factor] = []
    while left:
        factor = left[0]
        if isinstance(factor, Atom):
            ends = factor.size == 1 == need and bool(taken)
            if factor.size > need > 1 and factor.size % need == 0 and not factor.was_open:
                taken.append(factor.part(need))
                left[0], need = factor.size // need, 1
                break
            if factor.size == 0 or need % factor.size or (ends and (then == 1 or _divides(then, left[1:2]))):
                break
            taken.append(factor)
            need //= factor.size
            del left[0]
        elif need == 1:
            break
        elif need % factor == 0:
            taken.append(factor)
            need //= factor
            del left[0]
        elif factor % need == 0:
            taken.append(need)
            left[0], need = factor // need, 1
        else:
            return None
    return (tuple(taken) or (1,)) if need == 1 else None


def _divides(size: int | None, behind: Sequence[Factor]) -> bool:
    """Whether the size is a part of the number that follows."""
    number = next(iter(behind), None)
    return isinstance(number, int) and size is not None and 1 < size < number and number % size == 0


def led_by(dims: Sequence[Dim], symbol: str) -> tuple[int, int] | None:
    """Returns the first axis whose slowest factor is the symbol, and the number of elements for each index of the
    symbol. Returns None if there is no such axis, or if the symbol also occurs elsewhere."""
    places = [axis for axis, dim in enumerate(dims) if any(_is(factor, symbol) for factor in dim)]
    if len(places) != 1:
        return None
    dim = dims[places[0]]
    rest = dim[1:]
    return (places[0], size(rest)) if _is(dim[0], symbol) and not is_symbolic(rest) else None


def _is(factor: Factor, symbol: str) -> bool:
    return isinstance(factor, Atom) and factor.text == symbol
