"""Calls a model of transformers as generation calls it: a text in one call, or in two calls with the state between.

The state may hold keys and values, windows of them, or recurrent states; nothing is assumed about it. Calls of several
sizes show its name, and which of its axes change with the batch and with the text (`generation_state.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.factory import model_line, user_line
from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.inputs.object_rebuilding import Unpacked
from onnxsmith.exporter.pretrained.static_cache import Fixed
from onnxsmith.exporter.pretrained.tasks import STATELESS

MOST = 3
"""Limits the batch of a call."""
LONGEST = 16
"""The text has this many tokens. A choice: two more than the longest call needs."""
_CLOSE, ALIKE = 1e-3, 2e-2
"""Limits the difference of two computations of the same numbers, relative to the largest number: by one formula
(`_CLOSE`), and by the formulas for one token and for a whole text (`ALIKE`). Choices: the formulas of Bamba differ by
0.3%, a wrong state by 30% and more."""

_NUMBERS = (torch.Tensor, int, float)
"""Lists the types of values that a module may keep between calls, and that a graph lacks unless they are in the
state."""


def _tuple(hidden: torch.Tensor) -> Any:
    return (hidden,)


@dataclass
class Asking:
    """A model, a text, and the encoder's results.

    `tokens` is the name of the text among forward's parameters, `rest` are inputs of every call. `mask` says for which
    tokens the model takes an attention mask: "all", the "new" ones, "none". `state` names the state among the
    parameters, and `result` names it among the results. `fixed` makes the empty state of a cache of fixed length, which
    is also the mask's length. `rows` is the batch size of a later call: 1 if the model takes no larger one.
    `encoder_kind` wraps the encoder's results in the class that the model takes.
    """

    module: Any
    tokens: str
    text: torch.Tensor
    rest: Mapping[str, Any]
    encoded: torch.Tensor | None = None
    mask: str = "none"
    state: str = ""
    result: str = ""
    rows: int = 2
    encoder_kind: Callable[[torch.Tensor], Any] = _tuple
    fixed: Fixed | None = None

    def kwargs(
        self, batch: int, start: int, stop: int, state: Any = None, encoder: int | None = None
    ) -> dict[str, Any]:
        """Returns the arguments of a call with tokens `start` to `stop` of the text, after a state of the first `start`
        tokens. `encoder` limits the length of the encoder's results."""
        found = {name: value[:batch] for name, value in self.rest.items()}
        found[self.tokens] = self.text[:batch, start:stop].clone()
        if self.encoded is not None:
            hidden = self.encoded[:batch, :encoder]
            found["encoder_outputs"] = self.encoder_kind(hidden.clone())
            if "attention_mask" in found:
                found["attention_mask"] = torch.ones(hidden.shape[:2], dtype=torch.int64)
        elif self.mask != "none":
            seen = self.fixed.length if self.fixed else stop if self.mask == "all" else stop - start
            found["attention_mask"] = torch.ones(batch, seen, dtype=torch.int64)
        if state is not None:
            found[self.state] = state
        return found

    def call(self, batch: int, start: int, stop: int, state: Any = None, encoder: int | None = None) -> Any:
        """Returns the results of a call with these tokens. The state is not changed."""
        kept = {"state": self.begun() if state is None else copied(state)}
        with torch.no_grad():
            return self.module(**self.kwargs(batch, start, stop, encoder=encoder, **kept), use_cache=True)

    def begun(self) -> Any:
        """Returns the state that a first call takes; None if it takes no state."""
        return self.fixed.make() if self.fixed else None

    def after(self, batch: int, length: int, encoder: int | None = None) -> Any:
        """Returns the state after a first call with `length` tokens."""
        return self.call(batch, 0, length, encoder=encoder)[self.result]

    def loop(self, batch: int, steps: int) -> list[torch.Tensor]:
        """Returns the main output of each step, [batch, …], of a text that is generated token by token with the model's
        own state."""
        state, found = self.begun(), []
        with torch.no_grad():
            for at in range(steps):
                result = self.module(**self.kwargs(batch, at, at + 1, state), use_cache=True)
                found.append(main(result)[:, -1])
                state = result[self.result]
        return found

    def whole(self, batch: int, stop: int) -> torch.Tensor:
        """Returns the main output for all tokens in one call, [batch, tokens, …]."""
        with torch.no_grad():
            return main(self.module(**self.kwargs(batch, 0, stop)))


def asking(module: Any, kwargs: Mapping[str, Any], vocabulary: int, fixed: Fixed | None = None) -> Asking:
    """Finds how the model is called: the name of its state, and the tokens of its mask. `fixed` is the cache of the
    call, if its length is fixed.

    Raises:
        OnnxsmithError: `export/forward-failed` if the first call fails; `export/no-state` if the model returns no state
            that the next call takes, or cannot continue after a state.
    """
    tokens = "decoder_input_ids" if "decoder_input_ids" in kwargs else "input_ids"
    text = torch.randint(3, max(vocabulary, 5), (MOST, LONGEST))
    rest = {name: _rows(value) for name, value in kwargs.items() if name != tokens}
    masked = rest.pop("attention_mask", None) is not None
    encoded, kind = None, None
    if tokens == "decoder_input_ids":
        own = module.main_input_name
        with torch.no_grad(), _own_errors(module):
            first = module(**rest, **{tokens: text[:, :2]}, use_cache=True)
            kind = type(module.get_encoder()(rest[own]))
        encoded = first.encoder_last_hidden_state
        del rest[own]
        if masked and own == "input_ids":
            rest["attention_mask"] = torch.ones(MOST, 1, dtype=torch.int64)
    found = Asking(module, tokens, text, rest, encoded)
    with _own_errors(module):
        _name_state(found, kind)
    found.fixed = fixed
    for found.rows in (2, 1):
        for found.mask in ("all", "new", "none") if masked and encoded is None else ("none",):
            if goes_on(found, 1):
                return found
    raise _no_state(module, "a call with the state that it returned gives other results than one with the whole text")


@contextmanager
def _own_errors(module: Any) -> Iterator[None]:
    """Turns an error of the first call into a problem of the model, because the call asks only for the model's task."""
    try:
        yield
    except OnnxsmithError:
        raise
    except Exception as error:
        raise problem(
            "export/forward-failed",
            f"{type(module).__name__} raised an error on a text of its task",
            where=model_line(error) or user_line(error),
            why=f"{type(error).__name__}: {error}"[:600],
            fix="generate a text with it in transformers first: model.generate(ids, max_new_tokens=3) has to work",
        ) from error


def goes_on(asked: Asking, new: int) -> bool:
    """Whether `new` tokens after a state, and then one more token, have the same results as in one call with the whole
    text. The last token shows whether the call before it left a wrong state."""
    try:
        whole = asked.whole(asked.rows, 9 + new)
        first = asked.call(asked.rows, 8, 8 + new, asked.after(asked.rows, 8))
        last = asked.call(asked.rows, 8 + new, 9 + new, first[asked.result])
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
        return False
    return close(main(first), whole[:, 8:-1], ALIKE) and close(main(last), whole[:, -1:], ALIKE)


def close(found: torch.Tensor, wanted: torch.Tensor, within: float = _CLOSE) -> bool:
    """Whether the numbers are equal up to rounding."""
    if found.shape != wanted.shape or not bool(torch.isfinite(found).all()):
        return False
    return bool((found - wanted).abs().max() <= within * wanted.abs().max())


def main(result: Any) -> torch.Tensor:
    """Returns the main output: the logits, or else the first result."""
    found: torch.Tensor = result["logits"] if "logits" in result else result[0]
    return found


@contextmanager
def untouched(module: Any) -> Iterator[None]:
    """Restores the tensors and numbers in the attributes of the module and its submodules after the block. Other
    attributes stay, because transformers needs the hooks that its first call installs."""
    before = [(part, dict(vars(part))) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes in before:
            for name, now in list(vars(part).items()):
                was = attributes.get(name)
                if now is was or not any(isinstance(one, _NUMBERS) and type(one) is not bool for one in (now, was)):
                    continue
                vars(part)[name] = was
                if name not in attributes:
                    del vars(part)[name]


def copied(state: Any) -> Any:
    """Returns a copy of the state with tensors of its own."""
    found, spec = object_flattening.flatten(state)
    return pytree.tree_unflatten([leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for _, leaf in found], spec)


def owned(state: Any) -> Iterator[tuple[torch.Tensor | None, Mapping[str, Any]]]:
    """Yields the leaves of a state in the order of `flatten`, each with the attributes of the object that holds it."""
    yield from _owned(object_flattening.unpacked(state), {})


def _owned(tree: Any, attributes: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for leaf in pytree.tree_leaves(tree, is_leaf=lambda value: isinstance(value, Unpacked)):
        if isinstance(leaf, Unpacked):
            inside = [*(leaf.state[name] for name in leaf.holders), *leaf.items.values()]
            yield from _owned(inside, {"is_sliding": getattr(leaf.kind, "is_sliding", False), **leaf.state})
        else:
            yield leaf, attributes


def _rows(value: Any) -> Any:
    """Returns a tensor with `MOST` rows."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.cat([value, value[:1]])[:MOST] if value.shape[0] < MOST else value[:MOST]


def _name_state(asked: Asking, kind: Any = None) -> None:
    """Finds the state: a result that holds tensors and is also a parameter of forward. `kind` is the class of the
    encoder's results."""
    parameters = inspect.signature(asked.module.forward).parameters
    try:
        result = asked.call(2, 0, 8)
    except AttributeError:  # the model reads fields of what its own encoder returns
        if kind is None:
            raise
        asked.encoder_kind = lambda hidden: kind(last_hidden_state=hidden)
        result = asked.call(2, 0, 8)
    given = {*asked.kwargs(2, 0, 8), "encoder_outputs", "logits"}
    for name in result:
        held = [leaf for leaf, _ in owned(result[name]) if isinstance(leaf, torch.Tensor)]
        if name in parameters and name not in given and held:
            asked.state = asked.result = name
            return
    raise _no_state(asked.module, f"its results are: {', '.join(result)}")


def _no_state(module: Any, why: str) -> Any:
    return problem(
        "export/no-state",
        f"{type(module).__name__} returns no state from which the next call can continue",
        why=why,
        fix=STATELESS,
    )
