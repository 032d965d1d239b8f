"""Adapts a model to a deployment target: to its opset and IR version, without operators that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import versions, walk
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.optimizer.kernels import Kernels
from onnxsmith.runtimes.base import Runtime
from onnxsmith.targets.judges.base import Target

if TYPE_CHECKING:
    from onnxsmith.targets.profiles.profile_format import (
        Profile,  # takes a tenth of the time of a simplification without a target
    )

Simplify = Callable[..., tuple[ir.Model, Simplification]]
_ROUNDS = 3
"""The most simplifications until no rule makes a refused operator. A choice: with one rule off, another rule may make
it."""


@dataclass(frozen=True)
class ForTarget:
    """The limits of a target. `opset` and `ir_version` are the newest that it reads, None without a limit."""

    name: str
    opset: int | None = None
    ir_version: int | None = None
    profile: Profile | None = None
    kernels: Kernels | None = None
    """The kernels of the runtime with the target's name, if it is installed."""

    @classmethod
    def named(cls, name: str) -> ForTarget:
        """Returns the limits of a target: from its table, and from the runtime of the same name if it is installed.

        Raises: OnnxsmithError: `target/unknown` if there is neither a table nor a runtime; `profile/…` for a file that
            is no profile.
        """
        from onnxsmith.targets.profiles import profile_reader
        from onnxsmith.targets.profiles.profile_reader import FILE, by_name
        from onnxsmith.targets.profiles.releases import AT

        known = rooms.members("onnxsmith.runtimes", Runtime)
        profile = by_name(name)
        if profile is None and name not in known:
            judges = rooms.members("onnxsmith.targets.judges", Target)
            runs = {name for name, one in judges.items() if one.runs and one.runtime in (None, name)}
            names = sorted({*runs, *profile_reader.built_in()})
            near = near_names(name, names, 1) or names[:1]
            raise problem(
                "target/unknown",
                f"there is no target {name!r}",
                fix=f"write {near[0]} in place of {name}; there are {', '.join(names)}, onnxruntime{AT}VERSION and "
                f"{FILE}FILE.toml",
            )
        installed = name in known and known[name].missing() is None
        newest = known[name].newest_opset() if installed else None
        if newest is None and profile is not None:
            newest = _newest(profile)
        kernels = Kernels(known[name], newest) if newest is not None and name in known else None
        return cls(name, newest, profile.max_ir_version if profile is not None else None, profile, kernels)

    def at_opset(self, model: ir.Model) -> ir.Model:
        """Converts the model to the newest opset that the target reads and to which the converters can convert. If the
        target lists its kernels, this is the newest opset in which no operator of the model loses its kernel and most
        fused operators have a kernel.

        Raises:
            OnnxsmithError: `export/opset` if the model's opset is newer than the target's, and cannot be lowered.
        """
        now = opsets.of(model)
        if self.opset is None or now == self.opset:
            return model
        if now > self.opset:
            return opsets.convert(model, self.opset)
        best = self.kernels.best_opset(model, now) if self.kernels is not None else self.opset
        for version in range(best, now, -1):
            try:
                return opsets.convert(model, version)
            except OnnxsmithError:
                continue
        return model

    def opset_below(self, usual: int) -> int | None:
        """Returns the opset to write if the target does not read the opset `usual`; None if it does."""
        return self.opset if self.opset is not None and self.opset < usual else None

    def at_ir_version(self, model: ir.Model) -> tuple[str, ...]:
        """Lowers the IR version to the newest that the target reads, if the model allows it; returns notes."""
        if self.ir_version is None or (model.ir_version or 0) <= self.ir_version:
            return ()
        before, least = model.ir_version, versions.least_ir(model)
        model.ir_version = max(self.ir_version, least)
        if least > self.ir_version:
            return (f"{self.name} reads IR version {self.ir_version}, but the model needs {least}",)
        return (f"IR version {before} → {self.ir_version}, the newest that {self.name} reads",)

    def fitting(self, simplify: Simplify, skip: Sequence[str] = ()) -> Simplify:
        """Returns the simplification for the target: with the target's own rules, without `skip`, without rules whose
        operators the target refuses or has no kernel for, and with an IR version that the target reads."""
        return _Fitting(self, simplify, tuple(skip))


class _Fitting:
    """Simplifies again without the rules that made refused operators. Later simplifications leave out the rules that
    the first found."""

    def __init__(self, target: ForTarget, simplify: Simplify, skip: tuple[str, ...]) -> None:
        self._target, self._simplify, self._skip = target, simplify, skip
        self._left_out: tuple[str, ...] = ()
        self._settled = False

    def __call__(self, **options: Any) -> tuple[ir.Model, Simplification]:
        model, part = self._run(options)
        for _ in range(0 if self._settled else _ROUNDS):
            rules = self._to_blame(model, part)
            if not rules:
                break
            self._left_out += rules
            model, part = self._run(options)
        # later calls repeat the simplification with other options, and blame the same rules
        self._settled = True
        notes = self._target.at_ir_version(model)
        if self._left_out:
            said = "refuses the operators that these rules create, or has no kernel for them"
            notes += (f"left out, because {self._target.name} {said}: {', '.join(self._left_out)}",)
        return model, replace(part, notes=(*part.notes, *notes))

    def _run(self, options: dict[str, Any]) -> tuple[ir.Model, Simplification]:
        options = {"target": self._target.name, **options}
        if not self._left_out:
            return self._simplify(**options)
        return self._simplify(**{**options, "skip": (*self._skip, *self._left_out)})

    def _to_blame(self, model: ir.Model, part: Simplification) -> tuple[str, ...]:
        from onnxsmith.targets.profiles.condition_result import Outlook
        from onnxsmith.targets.profiles.node_acceptance import foresee

        profile, kernels = self._target.profile, self._target.kernels
        made = {op_type for one in part.fired if one.is_rewrite for op_type in one.made}
        if not made or (profile is None and kernels is None):
            return ()
        shaped, _ = inferred(model)
        refused = {
            one.node.op_type
            for one in (foresee(model, profile, shaped) if profile is not None else ())
            if one.node is not None and one.outlook is Outlook.REFUSED
        }
        if kernels is not None:
            versions = dict(model.opset_imports)
            suspects = (node for node in walk.all_nodes(shaped) if node.op_type in made)
            refused |= {node.op_type for node in suspects if kernels.lacks(node, versions)}
        blamed = (one.rule for one in part.fired if one.is_rewrite and refused & set(one.made))
        return tuple(dict.fromkeys(one for one in blamed if one not in self._left_out))


def _newest(profile: Profile) -> int | None:
    limit = profile.opset
    most = None if limit is None else max(limit.choices) if limit.choices else limit.most
    return int(most) if most is not None else None
