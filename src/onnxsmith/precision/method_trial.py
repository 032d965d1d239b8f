"""Tries one method on a prepared model: searches the smallest keep-list that meets the budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.quantisation import CurvePoint, LayerDamage, LeftAlone
from onnxsmith.graph.structure import walk
from onnxsmith.precision import keep_list, ranges
from onnxsmith.precision.calibration_data import NONE
from onnxsmith.precision.data.base import GIVE_DATA
from onnxsmith.precision.keep_list import SCHEME, WAY, Wishes, bare, matching
from onnxsmith.precision.keep_list_search import Keep, by_groups
from onnxsmith.precision.methods.base import ASKED, FLOATS, Layer, Method, Work
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.schemes import Schemes
from onnxsmith.precision.variant_evaluation import REFUSED, WORDS, Evaluations
from onnxsmith.precision.weight_counts import stored_bytes
from onnxsmith.runtimes.base import Options, Runtime


@dataclass(frozen=True)
class Tried:
    """The result of a method: the model (None if no keep-list meets the budget), the layers and the evaluations."""

    name: str
    method: Method
    model: ir.Model | None
    layers: tuple[LayerDamage, ...]
    curve: tuple[CurvePoint, ...]
    evaluations: int
    notes: tuple[str, ...]
    keep: Keep = frozenset()
    nbytes: int = 0
    """Bytes of the weights of the prepared model."""
    left: tuple[LeftAlone, ...] = ()
    calibrated: int = 0
    """The number of samples on which the ranges were measured."""
    scheme: str = ""
    """The chosen scheme of the method."""
    declared: tuple[str, ...] = ()
    """Clauses on declarations of the given model that were wrong, and are corrected in the result."""
    settings: tuple[str, ...] = ()
    """Keep-list entries that say how the layers that the list does not name were made."""


@dataclass
class Trying:
    """Searches the keep-list of a method. `wishes` are the entries of the user's keep-list."""

    name: str
    method: Method
    work: Work
    given: Given
    seen: Evaluations
    wishes: Wishes = field(default_factory=Wishes)

    def __post_init__(self) -> None:
        self.work.name = self.name
        self._schemes = Schemes(self.seen, ())
        self._why: dict[str, str] = {}
        self._needed = "the budget needs it"
        self._last: Keep = frozenset()
        self._only = ""

    def run(self) -> Tried:
        """Searches the smallest keep-list.

        Raises:
            OnnxsmithError: `quantize/nothing`, `quantize/unknown-layer`; the quantiser's and the runtime's errors.
        """
        work, wishes = self.work, self.wishes
        layers = self.method.layers(work)
        if not layers:
            raise nothing(self.name, self.method, work)
        self._refuse_to_guess()
        if work.ranges is None and (self.given.is_calibrated if self.method.needs_ranges else self.given.is_real):
            with stage("ranges"):
                work.ranges = ranges.measured(work.model, self.seen.runtime, (one for one in self.given.calibration))
        names = [layer.name for layer in layers]
        self._refuse_unknown(names)
        self._ask(names)
        work.listed = layers = self.method.layers(work)  # again: the ranges now say which values are finite
        why = dict.fromkeys(_met(names, wishes.wide), ASKED) | dict(self.method.always(work))
        always = work.always = frozenset(why)
        if always >= frozenset(names):
            raise everything(self.name, work, self.method, why)
        self._schemes, self._why = Schemes(self.seen, layers, only=self._only), why
        tried = self._tried(self._accepted(layers, why))
        if tried.model is not None and all(layer.kept for layer in tried.layers):
            raise everything(self.name, work, self.method, {layer.name: layer.kept for layer in tried.layers})
        return tried

    def _refuse_to_guess(self) -> None:
        """Without calibration, leaves activations as they are: ranges on generated inputs say nothing about others.

        Raises:
            OnnxsmithError: `quantize/no-data` if the method has no scheme for the weights alone.
        """
        if self.given.is_calibrated or not (self.method.needs_ranges or self.method.needs_data):
            return
        self._only = self.method.last_scheme(self.work)
        if not self._only:
            raise problem(
                "quantize/no-data",
                f"{self.name} needs data",
                why="this method measures the activations, but activations of generated inputs say nothing about "
                "real activations",
                fix=f"give {GIVE_DATA}; or --to int8-dynamic, which needs no data",
            )
        self.work.calibration = NONE
        self.work.notes.append("only weights become narrow: without data the ranges of activations are not known")

    def without_activations(self, because: str) -> Tried | None:
        """Makes, after `run`, the model in which only weights are narrow. Returns None if the method has no such
        scheme, or if the model is out of budget. Evaluates one keep-list. `because` is the reason, for the report."""
        last = self.method.last_scheme(self.work)
        if not last:
            return None
        self.work.scheme, self.work.kept_as, self.work.is_asked = last, "", False
        self.work.always = always = frozenset(self._why)
        # This list is evaluated even if no evaluations are left.
        self.seen.most = max(self.seen.most, len(self.seen.curve) + 1)
        self._needed = because
        with stage("search"):
            return self._tried(always) if self.seen.meets(always) else None

    def without_refused(self, takes: Callable[[ir.Model], bool], why: str) -> Tried | None:
        """Searches again, after `run`, with those layers kept because of which a runtime refuses the file. Returns None
        if none are found, or more than half of the layers. `takes` says whether the runtime accepts a model."""
        kept, always, layers = self._last, self.work.always, self._schemes.layers

        def works(stay: Keep) -> bool:
            self.work.always = always | stay
            return takes(self.method.variant(self.work, kept | stay))

        with stage("refused layers"):
            found = culprits([layer.name for layer in layers], always, works)
        self.work.always = always | found
        if not found:
            return None
        self._why |= dict.fromkeys(found, why)
        self.seen.whole = self.work.always
        self.seen.most += len(self.seen.curve)  # the second search gets as many evaluations as the first used
        self.work.scheme, self.work.kept_as, self.work.is_asked = "", "", False
        return self._tried(self._schemes.smallest(self.work.always))

    def again(self, runtime: Runtime, options: Options) -> Tried:
        """Searches again, after `run`, for a model that also meets the budget on `runtime` with `options`."""
        self.seen.require(runtime, options)
        self.work.scheme, self.work.kept_as, self.work.is_asked = "", "", False
        with stage("search"):
            return self._tried(self._schemes.smallest(self.work.always))

    def _ask(self, names: Sequence[str]) -> None:
        """Passes the user's keep-list to the method, and notes the entries for which the method has no use."""
        work, wishes, method = self.work, self.wishes, self.method
        work.alone = frozenset(_met(names, map(bare, wishes.weights)))
        work.eight = frozenset(_met(names, map(bare, wishes.eight)))
        for asked, taken, said in (
            (work.alone, bool(method.last_scheme(work)), "weights-alone:"),
            (work.eight, method.has_eight(work), "8-bits:"),
        ):
            if asked and not taken:
                work.notes.append(
                    f"{self.name} does not support `{said}` in a keep-list, so these layers become narrow"
                )
        known = (*method.schemes(work), method.last_scheme(work))
        if wishes.scheme in known and wishes.scheme:
            work.asked_scheme, work.asked_way = wishes.scheme, wishes.way
        elif wishes.scheme:
            work.notes.append(
                f"the keep-list names the scheme {wishes.scheme!r}, which {self.name} does not have: all schemes "
                "were tried"
            )

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuses entries of the keep-list that name no node at all."""
        nodes = {*names, *(node.name or "" for node in walk.all_nodes(self.work.model))}
        entries = (*self.wishes.wide, *self.wishes.weights, *self.wishes.eight)
        lost = [one for one in entries if not matching(bare(one), nodes)]
        if lost:
            said = keep_list.unknown_names(lost, nodes)
            raise problem(
                "quantize/unknown-layer",
                said.what,
                where=said.where,
                why="the list was made for another model, or the node was merged with others when the model was "
                f"simplified{said.near}",
                fix="`onnxsmith simplify MODEL -o s.onnx`, then `onnxsmith inspect s.onnx --nodes` lists the names",
            )

    def _tried(self, kept: Keep | None) -> Tried:
        work, method = self.work, self.method
        layers = self._schemes.layers
        names = [layer.name for layer in layers]
        is_whole = kept is not None and len(kept) == len(layers) and not work.kept_as
        if kept is not None and is_whole and not method.stored(work, kept):
            kept = None  # nothing changed: this is the given model
        self._last = kept if kept is not None else frozenset()
        settings = [f"{SCHEME}{work.scheme}"] if len(method.schemes(work)) > 1 and work.scheme else []
        settings += [f"{WAY}{way}"] if (way := method.named_way(work)) else []
        return Tried(
            self.name, method, None if kept is None else method.variant(work, kept),
            self._shown(layers, kept, self._why), tuple(self.seen.curve), len(self.seen.curve),
            (*work.notes, *method.said(work)),
            kept if kept is not None else frozenset(names), stored_bytes(work.model), method.left(work),
            work.ranges.samples if work.ranges is not None else 0, work.scheme, settings=tuple(settings),
        )  # fmt: skip

    def _shown(self, layers: Sequence[Layer], kept: Keep | None, why: Mapping[str, str]) -> tuple[LayerDamage, ...]:
        """Returns the layers for the report. If no keep-list meets the budget, shows the list with the best score."""
        work, method = self.work, self.method
        if kept is None:
            found, stored, eight = self.seen.nearest()
        else:
            found, stored, eight = kept, method.stored(work, kept), method.eight(work, kept)
        idle = "the layer has no large weights" if work.scheme == method.last_scheme(work) != "" else ""
        needed = self._needed if kept is not None else "the model with the best score keeps this layer"
        narrow = needed if kept is not None else "as in the model with the best score"
        shown = []
        for one in layers:
            reasons = {"kept": "", "weights": "", "eight": ""}
            if one.name in stored:
                reasons["weights"] = one.weights_alone or narrow
            elif one.name in eight:
                reasons["eight"] = ASKED if one.name in work.eight else narrow
            elif one.name in why or one.name in found or idle:
                reasons["kept"] = why.get(one.name, needed if one.name in found else idle)
            shown.append(LayerDamage(one.name, one.op, one.nbytes, self._schemes.errors.get(one.name), **reasons))
        return tuple(shown)

    def _accepted(self, layers: Sequence[Layer], why: dict[str, str]) -> Keep | None:
        """Searches the smallest keep-list. If a few layers make the quantiser or the runtime refuse the model, keeps
        these and adds them to `why` with the message."""
        always, noted = self.work.always, len(self.work.notes)
        self.seen.whole = always
        try:
            return self._schemes.smallest(always)
        except OnnxsmithError as error:
            if error.problem.id not in REFUSED:
                raise
            refused = error
        self.work.scheme, self.work.kept_as = self.method.schemes(self.work)[0], ""
        with stage("refused layers"):
            most = TRIES // 4 if self.method.engine.runs_the_model else TRIES  # a try may take minutes there
            found = culprits([layer.name for layer in layers], always, self.seen.is_accepted, most)
        if not found:
            raise refused
        said = f"{refused.problem.what}: {refused.problem.why}"[:WORDS]
        why |= dict.fromkeys((layer.name for layer in layers if layer.name in found), said)
        # Notes of the refused attempt do not hold for the result.
        del self.work.notes[noted:]
        always = self.work.always = self.seen.whole = frozenset(why)
        return self._schemes.smallest(always)


def _met(names: Sequence[str], patterns: Iterable[str]) -> set[str]:
    """Returns the names that match at least one of the patterns."""
    return {name for pattern in patterns for name in matching(pattern, names)}


# Finds the layers because of which a quantiser or a runtime refuses a model, by halving.

TRIES = 16
"""The most models made to find refused layers. A choice: enough to find one layer in two hundred."""


def culprits(layers: Sequence[str], always: Keep, works: Callable[[Keep], bool], most: int = TRIES) -> Keep:
    """Finds the layers that have to stay as they are so that all others can be quantised and run. `works` makes the
    model in which the given layers stay, and says whether it is accepted; with all `layers` given, it must be. At most
    `most` models are made.

    Empty if more than half of the layers would have to stay, because then single layers are not the cause.
    """
    order = [name for name in layers if name not in always]
    tries = 0
    seen: dict[Keep, bool] = {frozenset(): False, frozenset(order): True}

    def passes(keep: Keep) -> bool:
        nonlocal tries
        if keep not in seen:
            if tries >= most:
                return False
            tries += 1
            seen[keep] = works(always | keep)
        return seen[keep]

    found = frozenset(by_groups(order, passes) or ())
    return found if 2 * len(found) <= len(order) else frozenset()


_SHOWN = 3
"""The most weights that a problem names. A choice."""
_WORTH = 2048
"""The least bytes of weights that a method has to change to be advised. A choice: Casts, scales and their names take
some hundred bytes, which would make a file with fewer weights larger."""
_LONG = 600
"""The most characters of the reasons. A choice."""


def nothing(name: str, method: Method, work: Work) -> OnnxsmithError:
    """Makes the problem for a model in which the method changes no node."""
    dtypes = Counter(one.dtype for one in walk.tensors(work.model) if one.dtype in FLOATS and one.nbytes)
    other = next((dtype.name.lower() for dtype, _ in dtypes.most_common() if dtype != ir.DataType.FLOAT), "")
    if other and ir.DataType.FLOAT not in dtypes:
        return problem(
            "quantize/nothing",
            f"the model is in {other}, but {name} is made from a float32 model",
            where=largest_weights(work.model, other),
            why=f"its weights are in {other}",
            fix="start from the float32 model: `onnxsmith inspect MODEL --weights` shows the dtypes"
            + ("; --to int4 also narrows weights of float16" if other == "float16" and name != "int4" else ""),
        )
    left = "; ".join(f"{one.count} {one.op}: {one.why}" for one in method.left(work))
    return problem(
        "quantize/nothing",
        f"no node of the model can become {name}",
        where=largest_weights(work.model, ""),
        why=f"the method changes {method.changes}{method.where}" + (f". {left}"[:_LONG] if left else ""),
        fix=_other(work, name),
    )


def largest_weights(model: ir.Model, dtype: str) -> str:
    """Lists the largest weights, of one dtype if given; or says that there are none."""
    tensors = [one for one in walk.tensors(model) if one.dtype in FLOATS and dtype in ("", one.dtype.name.lower())]
    largest = sorted(tensors, key=lambda one: -one.nbytes)[:_SHOWN]
    listed = ", ".join(
        f"{one.name or 'a Constant'} {one.dtype.name.lower()} {list(one.shape.numpy())}" for one in largest
    )
    return f"its largest weights: {listed}" if listed else "the model has no weights in floats"


def _other(work: Work, name: str) -> str:
    """Suggests a method that makes the model smaller, if there is one."""
    known = rooms.members("onnxsmith.precision.methods", Method)
    is_changed = False
    for other in ("int8", "int4", "float16"):
        stay = known[other].always(work)
        changed = [] if other == name else [one for one in known[other].layers(work) if one.name not in stay]
        if sum(layer.nbytes for layer in changed) >= _WORTH:
            return f"give --to {other}, which changes nodes of this model"
        is_changed = is_changed or bool(changed)
    if is_changed:
        return "keep the model as it is: it has so few weights that the file would not become smaller"
    return "keep the model as it is: neither int8, int4 nor float16 changes a node of it"


def everything(name: str, work: Work, method: Method, why: Mapping[str, str]) -> OnnxsmithError:
    """Makes the problem for a model in which every layer stays. `why` has the reasons by layer."""
    counts = Counter(why.values())
    told = "; ".join(reason if len(counts) == 1 else f"{count} because {reason}" for reason, count in counts.items())
    instead = f"give {method.instead}" if method.instead else _other(work, name)
    return problem(
        "quantize/nothing",
        f"every layer that could become {name} stays as it is",
        why=told[:_LONG],
        fix="give a shorter keep-list, or another --to" if ASKED in counts else instead,
    )


def no_method(model: ir.Model, notes: Sequence[str]) -> OnnxsmithError:
    """Makes the problem for a model that no method of `auto` changes. `notes` are the methods' reasons."""
    return problem(
        "quantize/nothing",
        "no method changes this model",
        where=largest_weights(model, ""),
        why="; ".join(notes)[:_LONG],
        fix="keep the model as it is; or give one --to, for a message with the reason and a fix for that method",
    )
