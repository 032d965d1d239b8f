"""Settings that several verbs share, in the Python API and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.base.options import flag, option


@dataclass(frozen=True)
class Verify:
    """How to verify a result: the runtime, the inputs and the tolerance.

    `runtime` is the name of a runtime, such as `reference`; None means the first that runs the model. `tolerance` is
    the largest difference relative to the root mean square of an output; None allows what rounding explains. `sizes`
    fixes symbolic dimensions, or limits them to a range: `{"batch": 1, "height": (64, 1024)}`, or texts such as
    `batch=1` and `height=64..1024`. `free` names outputs that are free by definition: `sign:vectors` up to a sign of
    each column, `sign:u+vh:-1` one sign for a column of `u` and a row of `vh`, `order:boxes+scores` up to the order of
    the rows. `thorough` tests the check itself with every planted fault, however long this takes. By
    default, fewer faults are planted in a large model, and the report says so.
    """

    runtime: str | None = option(
        "runtime to check on: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME"
    )
    seed: int = option("seed of the generated inputs", default=0)
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's scale; default: estimated from rounding", metavar="NUMBER"
    )
    sizes: Mapping[str, int | str | tuple[int | None, ...]] | Sequence[str] | None = option(
        "size of a symbolic dimension in the check, or a range of sizes: batch=1, height=64..1024; repeatable",
        default=(),
        name="dim",
        metavar="NAME=SIZE",
    )
    free: Sequence[str] = option(
        "outputs whose sign or order is arbitrary: sign:vectors, order:boxes+scores; repeatable",
        default=(),
        metavar="KIND:NAME",
    )
    thorough: bool = flag(
        "test the check itself with every planted fault (a weight that is changed on purpose), even if this is slow"
    )


@dataclass(frozen=True)
class Save:
    """How to write a result. `external_data` keeps the weights in a second file; None keeps them as the input does, or
    decides by their size if there is no input file. `write_unsure` writes the result even if the verdict is
    `cannot-tell`."""

    external_data: bool | None = option("keep weights in a second file; default: as in the input file, or by size")
    write_unsure: bool = flag("write the file even if the check cannot tell whether the models are equal")


def verifying(verify: Verify | bool) -> Verify | None:
    """Returns the settings: the defaults for `verify=True`, None for `verify=False`."""
    if isinstance(verify, Verify):
        return verify
    return Verify() if verify else None
