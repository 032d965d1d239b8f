"""Settings that several verbs share, in Python and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.options import flag, option


@dataclass(frozen=True)
class Verify:
    """How a result is verified: where it is run, on which inputs, and how far it may differ.

    `runtime` is `onnxruntime`, `openvino` or `reference`; None takes the first of them that runs the model. `tolerance`
    is the largest difference relative to the root mean square of an output; None allows what rounding explains. `sizes`
    fixes symbolic dimensions: `{"batch": 1}`, or texts `batch=1`.
    """

    runtime: str | None = option("runtime to check on: onnxruntime, openvino or reference", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)
    tolerance: float | None = option(
        "largest difference allowed, relative to scale, instead of what rounding explains", metavar="NUMBER"
    )
    sizes: Mapping[str, int] | Sequence[str] | None = option(
        "size of a symbolic dimension in the check: batch=1; several times", default=(), name="dim", metavar="NAME=SIZE"
    )


@dataclass(frozen=True)
class Save:
    """How a result is written. `external_data` keeps the weights in a second file; None keeps them as the input does,
    and decides by their size where there is none. `write_unsure` writes also what the check cannot tell from a wrong
    result."""

    external_data: bool | None = option(
        "keep weights in a second file; as the input does, or decided by size, when left out"
    )
    write_unsure: bool = flag("write also where the check cannot tell whether the two are equal")


def verifying(verify: Verify | bool) -> Verify | None:
    """The settings that `verify=True` stands for; None for `verify=False`."""
    if isinstance(verify, Verify):
        return verify
    return Verify() if verify else None
