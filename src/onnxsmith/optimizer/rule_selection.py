"""Chooses the rules, passes and steps to run: by id, by pattern, by exactness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnxsmith.base import name_patterns
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import tensor_paths
from onnxsmith.optimizer import branches, folding, pipeline
from onnxsmith.optimizer.rules.base import Exactness, Rule

STEPS = (folding.RULE, branches.RULE, *(id_ for id_, _ in pipeline.AFTER if id_))


@dataclass(frozen=True)
class Chosen:
    """The rules that run, and the ids of the passes and steps that run. `contrib` are the rules that make operators of
    a runtime. They run last, because no other rule knows these operators."""

    rules: dict[str, Rule]
    contrib: dict[str, Rule]
    steps: frozenset[str]
    spare_quantisers: bool


def chosen(
    rules: dict[str, Rule],
    only: Iterable[str],
    skip: Iterable[str],
    exactness: str | None,
    *,
    contrib: bool = False,
    target: str = "",
) -> Chosen:
    """Returns the rules that `only` and `skip` leave; both have ids, or patterns such as `fuse/*`. Rules that make
    operators of a runtime run only with `contrib` or if `only` names them; a rule that was measured slower runs only if
    it is named. Rules for one target run if it is the `target`, or if they are named.

    Raises:
        OnnxsmithError: `simplify/unknown-rule`; `simplify/unknown-exactness`.
    """
    only = tuple(only)
    named = set(only)
    known = [*rules, *STEPS]
    kept, left_out = _matching(only, known), _matching(skip, known)
    try:
        least = Exactness.REASSOCIATES if exactness is None else Exactness[exactness.upper()]
    except KeyError:
        raise problem(
            "simplify/unknown-exactness",
            f"there is no exactness {exactness!r}",
            fix=f"one of: {', '.join(one.name.lower() for one in Exactness)}",
        ) from None
    wanted = {id_ for id_ in known if (not kept or id_ in kept) and id_ not in left_out}
    running = {id_: rule for id_, rule in rules.items() if id_ in wanted and rule.exactness <= least}
    asked = {id_ for id_, rule in running.items() if (id_ in kept or contrib) and (id_ in named or not rule.slower)}
    fitting = {id_ for id_, rule in running.items() if rule.target in ("", target) or id_ in named}
    return Chosen(
        {id_: rule for id_, rule in running.items() if not rule.domain and id_ in fitting},
        {id_: rule for id_, rule in running.items() if rule.domain and id_ in asked},
        frozenset(wanted.intersection(STEPS)),
        exactness is None,
    )


def _matching(texts: Iterable[str], known: list[str]) -> set[str]:
    found: set[str] = set()
    for text in texts:
        ids = name_patterns.fitting(known, text)
        if not ids:
            raise unknown(text, known)
        found.update(ids)
    return found


def unknown(text: str, known: Iterable[str]) -> OnnxsmithError:
    """Returns the error for an unknown id. It suggests ids with the same words in another order or part."""
    ids = list(known)
    near = tensor_paths.near(text.strip("*/"), ids)
    listed = "`onnxsmith explain all` lists all ids; a pattern such as 'fuse/*' selects several rules"
    return problem(
        "simplify/unknown-rule",
        f"there is no rule {text!r}",
        fix=f"write {' or '.join(near)}; {listed}" if near else listed,
    )
