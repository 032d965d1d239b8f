"""`onnxsmith baseline record m.onnx`, `onnxsmith baseline check`, `onnxsmith baseline accept m.onnx --reason TEXT`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command

_ACTIONS = ("record", "check", "accept")


@dataclass(frozen=True)
class Baseline(Command):
    """Hold models to what they gave, cost and ran on before.

    `record` writes inputs, outputs, interface, nodes, sizes, times and stages of models to a text file and a data file
    beside it. `check` measures again on the recorded inputs, and names the cause of each change; without MODEL, it
    measures all recorded models. `accept` records a changed model anew, with a reason. The exit status is 1 if a model
    is worse than recorded, or if that cannot be told.
    """

    name = "baseline"

    action: str = argument("record, check or accept", metavar="ACTION")
    models: tuple[str, ...] = argument("the .onnx files", default=(), metavar="MODEL…")
    file: str = option(
        "the file of the baseline; its data lies beside it", default="baseline.json", short="-o", metavar="FILE"
    )
    reason: str = option("why the change is accepted; it stays in the baseline", default="", metavar="TEXT")
    target: tuple[str, ...] = option(
        "record the stage that this target reaches: onnxruntime, openvino, …; repeatable", default=(), metavar="NAME"
    )
    input: tuple[str, ...] = option(
        "inputs to record: inputs.npz, x=photo.png; repeatable; others are generated", default=(), metavar="SPEC"
    )
    runtime: str | None = option("runtime that computes the recorded outputs", metavar="NAME")
    no_time: bool = flag("measure no times and no memory")
    seconds: float = option("seconds of measuring the time of each model, and more if they do not suffice", default=3.0)
    allow: str = option("how much slower a model may be, beyond the noise", default="5%", metavar="SHARE")
    allow_size: str = option("how much larger a file may be", default="5%", metavar="SHARE")
    seed: int = option("seed of the generated inputs", default=0)

    def refuse(self) -> None:
        from onnxsmith.base.problem import problem
        from onnxsmith.base.words import in_place_of

        if self.action not in _ACTIONS:
            raise problem(
                "gate/action", f"baseline has no action {self.action!r}", fix=in_place_of(self.action, _ACTIONS)
            )
        given = [name for name in ("reason", "target", "input", "runtime", "seed") if getattr(self, name)]
        stray = [name for name in given if self.action == "check" or (self.action == "record" and name == "reason")]
        if stray:
            raise problem(
                "gate/action",
                f"{self.action} takes no --{stray[0]}",
                why="it compares with what was recorded, on the recorded inputs"
                if self.action == "check"
                else "a reason belongs to a change of a recorded model",
                fix=f"leave --{stray[0]} out",
            )

    def run(self) -> Report:
        from onnxsmith.deployment.benching.bench_options import share
        from onnxsmith.gate.baselines import verbs
        from onnxsmith.gate.baselines.settings import Settings

        settings = Settings(
            inputs=self.input,
            runtime=self.runtime,
            targets=self.target,
            times=not self.no_time,
            seconds=self.seconds,
            seed=self.seed,
            allow=share(self.allow, "--allow 5%"),
            allow_size=share(self.allow_size, "--allow-size 5%"),
        )
        if self.action == "accept":
            return verbs.accept(self.models, self.file, self.reason, settings)
        action = verbs.record if self.action == "record" else verbs.check
        return action(self.models, self.file, settings)
