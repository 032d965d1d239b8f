"""What the loss of a torch module says of each weight, to the first order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxsmith.base.problem import problem
from onnxsmith.precision.pruning.groups import Channels, Group
from onnxsmith.precision.pruning.measures.base import Measure, Subject
from onnxsmith.precision.pruning.saliency import of_initializers
from onnxsmith.verification.metrics.base import Floats


class FirstOrder(Measure):
    """The sum of the squares of weight times gradient over all weights of a channel (P. Molchanov et al., "Importance
    Estimation for Neural Network Pruning", CVPR 2019, arXiv 1906.10771, equation 9). The user gives the squares by
    parameter of the torch module, the mean over batches: only torch has gradients. They are on one scale in all layers,
    that of the loss, so that layers are not made comparable as by the other measures."""

    title = "first-order effect on the loss, from the given saliency"

    def scores(self, subject: Subject) -> Sequence[Floats]:
        known = of_initializers(subject.model, subject.saliency, subject.places)
        sums = [_sums(group, known) for group in subject.found.free]
        if missing := [group for group, own in zip(subject.found.free, sums, strict=True) if own is None]:
            raise _missing(missing[0], subject.found)
        found = [own for own in sums if own is not None]
        mean = float(np.mean(np.concatenate(found))) or 1.0
        return [own / mean for own in found]


def _sums(group: Group, known: dict[str, Floats]) -> Floats | None:
    """What each channel of a group has; None if nothing is known of any weight of the group."""
    total, any_known = np.zeros(len(group.channels)), False
    for place, (name, axis) in enumerate(group.slots):
        own = known.get(name)
        if own is None:
            continue
        along = own.sum(axis=tuple(other for other in range(own.ndim) if other != axis))
        total += [along[channel[place][1]].sum() for channel in group.channels]
        any_known = True
    return total if any_known else None


def _missing(group: Group, found: Channels) -> Exception:
    names = [name for name, _ in group.slots]
    return problem(
        "prune/saliency",
        "no saliency is given for the weights of some channels",
        where=", ".join(names)[:200],
        why=f"{len(found.free)} groups of channels can go, and nothing says which channels of this one matter",
        fix="give the saliency of all parameters (`onnxsmith explain prune/saliency`), or --by norm",
    )
