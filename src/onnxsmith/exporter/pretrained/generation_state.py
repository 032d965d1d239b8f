"""Makes the inputs of a call in the middle of a generated text: new tokens, and the state that earlier calls returned.

Calls with another batch, another length of the text and another length of the encoder's input show which of them
changes each axis of the state. Then a text is generated step by step from an empty state, as programs do with the file.
It is compared with the text that the model generates with its own state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.pretrained.generation_calls import MOST, Asking, asking, close, copied, goes_on, main, owned
from onnxsmith.exporter.pretrained.image_continuation import LIMIT, goes_on_after
from onnxsmith.exporter.pretrained.static_cache import UNFIX, Fixed
from onnxsmith.exporter.pretrained.tasks import STATELESS

_PAST, _NEW = 8, 3
"""The example's call has this many past tokens and new tokens. A choice: small and different from each other."""
BATCH, SEQUENCE, SEEN, WINDOW, ENCODER = (
    "batch_size", "sequence_length", "past_sequence_length", "past_window_length", "encoder_sequence_length",
)  # fmt: skip
_LARGEST = 1 << 24
"""Limits the elements of a state that is filled up to its window. A choice: 64 MB in float32."""

Axes = dict[int, str]


@dataclass(frozen=True)
class Step:
    """Arguments of one call, the dynamic axes of its tensors by input name, further arguments, and the limits of the
    file."""

    kwargs: dict[str, Any]
    dynamic: dict[str, Axes]
    more: tuple[dict[str, Any], ...]
    limits: tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    """A tensor of the state: its path, its axes, and the largest size of a window along an axis (0: not known)."""

    path: str
    axes: Axes
    window: int = 0


def step(
    module: Any,
    kwargs: Mapping[str, Any],
    dynamic: Mapping[str, Axes],
    vocabulary: int,
    names: Mapping[str, str],
    *,
    first: Mapping[str, Any] | None = None,
    fixed: Fixed | None = None,
) -> Step:
    """Returns the arguments of a call after `_PAST` tokens, with axes measured by calling the model. `names` maps the
    name of a state to its name in graphs. `first` are the arguments of a first call with images, `fixed` is the model's
    cache if its length is fixed.

    Raises:
        OnnxsmithError: `export/no-state` if the model has no state for later calls, or needs more than the state's
            tensors.
    """
    asked = asking(module, kwargs, vocabulary, fixed)
    leaves = list(_leaves(asked))
    recurrent = fixed is None and any(not {SEEN, WINDOW, ENCODER} & {*leaf.axes.values()} for leaf in leaves)
    new = _NEW if not recurrent and goes_on(asked, _NEW) else 1
    _follow(asked, leaves)
    rows = asked.rows
    given = asked.kwargs(rows, _PAST, _PAST + new, copied(asked.after(rows, _PAST)))
    more, limits = _generated(asked, leaves)
    if first is not None:
        after = goes_on_after(asked, first)
        more, limits = [*more, *([after] if rows > 1 else [])], [*limits, LIMIT]
    if fixed is not None:
        limits = [f"holds {fixed.length} tokens at most", *limits]
    if new == 1:
        limits = ["takes one token in a call", *limits]
    if rows == 1:
        limits = ["takes a batch of 1 only", *limits]
    name = names.get(asked.state, asked.state)
    return Step(given, _dynamic(asked, leaves, dynamic, name, new), tuple(more), tuple(limits))


def _dynamic(asked: Asking, leaves: list[_Leaf], dynamic: Mapping[str, Axes], name: str, new: int) -> dict[str, Axes]:
    length = {1: "decoder_sequence_length" if asked.encoded is not None else SEQUENCE} if new > 1 else {}
    found = {key: axes for key, axes in dynamic.items() if key in asked.rest and key != "attention_mask"}
    found[asked.tokens] = {0: BATCH, **length}
    if asked.encoded is not None:
        found["encoder_outputs"] = {0: BATCH, 1: ENCODER}
        if "attention_mask" in asked.rest:
            found["attention_mask"] = {0: BATCH, 1: ENCODER}
    elif asked.mask != "none":
        seen = any(SEEN in leaf.axes.values() for leaf in leaves)
        tokens = SEQUENCE if new > 1 else "1"
        total = f"{SEEN} + {tokens}" if seen else "total_sequence_length"
        along = {} if asked.fixed else {1: total} if asked.mask == "all" else length
        found["attention_mask"] = {0: BATCH, **along}
    found |= {".".join(filter(None, [name, leaf.path])): leaf.axes for leaf in leaves}
    fixed = {BATCH} if asked.rows == 1 else set()
    return {key: {axis: dim for axis, dim in axes.items() if dim not in fixed} for key, axes in found.items()}


def _leaves(asked: Asking) -> Iterator[_Leaf]:
    """Lists the tensors of the state, with the axes that changed in calls of other sizes."""
    base = asked.after(2, _PAST)
    wide, long, short = asked.after(MOST, _PAST), asked.after(2, _PAST + 3), asked.after(2, 2)
    inner = asked.after(2, _PAST, asked.encoded.shape[1] - 1) if asked.encoded is not None else base
    paths = [
        ".".join(filter(None, map(object_flattening.step, path))) for path, _ in object_flattening.flatten(base)[0]
    ]
    every = zip(paths, owned(base), *map(object_flattening.leaves, (wide, long, short, inner)), strict=True)
    for path, (leaf, attributes), *others in every:
        if not isinstance(leaf, torch.Tensor):
            continue
        axes, window = {}, 0
        if bool(attributes.get("is_sliding")):
            window = next((held - 1 for key, held in attributes.items() if "window" in key and type(held) is int), 0)
        for axis, size in enumerate(leaf.shape):
            more_rows, longer, shorter, fewer = (other.shape[axis] for other in others)
            if more_rows == size + MOST - 2:
                axes[axis] = BATCH
            elif shorter < size and longer == size:
                axes[axis], window = WINDOW, size
            elif longer == size + 3 and shorter == size - _PAST + 2:
                axes[axis] = WINDOW if window else SEEN if size == _PAST else f"{SEEN} + {size - _PAST}"
            elif fewer == size - 1:
                axes[axis] = ENCODER
        yield _Leaf(path, axes, window if WINDOW in axes.values() else 0)


def _follow(asked: Asking, leaves: list[_Leaf]) -> None:
    """Makes numbers in the state's objects that count past tokens follow each call's inputs: the mask's length minus
    the number of new tokens. Refuses a window whose size differs from the number of past tokens in it."""
    first, second = (list(object_flattening.opened(asked.after(2, length))) for length in (_PAST, _PAST + 3))
    counts = [
        (at, name)
        for at, (one, other) in enumerate(zip(first, second, strict=True))
        for name, held in vars(one).items()
        if type(held) is int and (held, getattr(other, name, None)) == (_PAST, _PAST + 3)
    ]
    windows = [(at, leaf) for at, leaf in enumerate(leaves) if leaf.window]
    if asked.mask != "all" or asked.fixed or not (counts or windows):
        return  # a mask of fixed length does not give the number of past tokens
    tokens, state = asked.tokens, asked.state

    def follow(_: Any, args: Any, kwargs: Any) -> None:
        if state not in kwargs or "attention_mask" not in kwargs:
            return
        past = kwargs["attention_mask"].shape[1] - kwargs[tokens].shape[1]
        held = list(object_flattening.opened(kwargs[state]))
        if held and isinstance(past, int):
            sizes = [leaf for leaf in object_flattening.leaves(kwargs[state]) if isinstance(leaf, torch.Tensor)]
            _check_windows(windows, sizes, past)
        for at, name in counts if held else ():
            setattr(held[at], name, past)

    asked.module.register_forward_pre_hook(follow, with_kwargs=True)


def _check_windows(windows: list[tuple[int, _Leaf]], tensors: list[torch.Tensor], past: int) -> None:
    for at, leaf in windows:
        axis = next(axis for axis, name in leaf.axes.items() if name == WINDOW)
        if at < len(tensors) and tensors[at].shape[axis] != min(past, leaf.window):
            raise ValueError(f"{leaf.path} holds {tensors[at].shape[axis]} of {past} past tokens")


def _generated(asked: Asking, leaves: list[_Leaf]) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns arguments of steps of one token, from an empty state, at batch 1 and `MOST`; and the limits of these
    steps."""
    found: list[dict[str, Any]] = []
    limits: list[str] = []
    steps = min(max([3, *(leaf.window + 3 for leaf in leaves if leaf.window < _PAST)]), asked.text.shape[1] - 1)
    for batch in (1, MOST) if asked.rows > 1 else (1,):
        wanted = asked.loop(batch, steps)
        begun = 0
        state = _empty(asked, leaves, batch)
        if not _begins(asked, batch, state, wanted[0]):
            limits = ["goes on from the state of a first call, not from an empty state"]
            begun, state = 1, _as_the_example(asked, asked.after(batch, 1))
        for at in range(begun, steps):
            if at in (begun, begun + 1, steps - 1):
                found.append(asked.kwargs(batch, at, at + 1, copied(state)))
            result = asked.call(batch, at, at + 1, copied(state))
            if not close(main(result)[:, -1], wanted[at]):
                raise problem(
                    "export/no-state",
                    f"{type(asked.module).__name__} keeps more between calls than the tensors of its state",
                    where=f"token {at} of a text, batch {batch}",
                    why="a text that is generated step by step from these tensors differs from the one that the model "
                    "generates",
                    fix=UNFIX if asked.fixed else STATELESS,
                )
            state = _as_the_example(asked, result[asked.result])
    if asked.fixed:  # generated numbers of past tokens leave no room for a long text
        found.append(asked.kwargs(asked.rows, 0, asked.text.shape[1], _empty(asked, leaves, asked.rows)))
    full, unfilled = _filled(asked, leaves)
    if asked.encoded is not None:
        limits = ["takes the cross-attention states from a first call"]
    return [*found, *full], limits + unfilled


def _as_the_example(asked: Asking, state: Any) -> Any:
    """Puts the tensors of a state into the example's objects, whose other attributes are constants of a graph."""
    _, spec = object_flattening.flatten(asked.after(1, _PAST))
    return pytree.tree_unflatten(object_flattening.leaves(state), spec)


def _begins(asked: Asking, batch: int, state: Any, wanted: torch.Tensor) -> bool:
    """Whether the first token has the same result after an empty state as without a state."""
    try:
        return close(main(asked.call(batch, 0, 1, state))[:, -1], wanted)
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
        return False


def _empty(asked: Asking, leaves: list[_Leaf], batch: int) -> Any:
    """Makes a state without past tokens: size 0 along the axes of the past, zeros elsewhere. The encoder's results
    stay."""
    return _made(asked, leaves, batch, 0, torch.zeros)


def _made(asked: Asking, leaves: list[_Leaf], batch: int, past: int, make: Any) -> Any:
    found, spec = object_flattening.flatten(asked.after(batch, _PAST))
    described = iter(leaves)
    made = []
    for _, leaf in found:
        if not isinstance(leaf, torch.Tensor):
            made.append(leaf)
            continue
        one = next(described)
        sizes = list(leaf.shape)
        for axis, name in one.axes.items():
            if name == WINDOW:
                sizes[axis] = min(past, one.window) if one.window else past
            elif name.startswith(SEEN):
                sizes[axis] += past - _PAST
        fixed = ENCODER in one.axes.values()
        made.append(leaf if fixed else make(sizes).to(leaf.dtype))
    return pytree.tree_unflatten(made, spec)


def _filled(asked: Asking, leaves: list[_Leaf]) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns arguments after more tokens than the largest window holds, with random numbers as the state; and the
    limits."""
    window = max((leaf.window for leaf in leaves), default=0)
    if window < _PAST or asked.mask != "all":
        return [], []
    past = window + 3
    state = _made(asked, leaves, asked.rows, past, torch.randn)
    if sum(leaf.numel() for leaf in object_flattening.leaves(state) if isinstance(leaf, torch.Tensor)) > _LARGEST:
        return [], [f"a full window of {window + 1} tokens was not tried"]
    given = asked.kwargs(asked.rows, 0, 1, state)
    given["attention_mask"] = torch.ones(asked.rows, past + 1, dtype=torch.int64)
    return [given], []
