"""`onnxsmith simplify in.onnx -o out.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, group, option
from onnxsmith.report.base import Report
from onnxsmith.settings import Save, Verify


@dataclass(frozen=True)
class Simplify(Command):
    """Simplify an ONNX model, verified.

    The result is compared with the original on generated inputs before it is written.
    """

    name = "simplify"

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str = option("the file to write", short="-o", metavar="FILE", default="", writes=True)
    only: tuple[str, ...] = option("use this rule only; several times", default=(), metavar="RULE")
    skip: tuple[str, ...] = option("leave this rule out; several times", default=(), metavar="RULE")
    exactness: str | None = option(
        "how far a rewrite may move a number: bitwise, value or reassociates; when left out reassociates, but not"
        " before a quantiser",
        metavar="HOW",
    )
    opset: int | None = option("bring the model to this opset first, so that rules may use its operators")
    target: str | None = option("bring the model to the newest opset that this runtime runs", metavar="RUNTIME")
    inline_functions: bool = flag("inline model-local functions first")
    max_growth: float = option("share by which folded constants may make the file larger", default=0.0, metavar="SHARE")
    explain: bool = flag("list every rewrite, and every refusal with its reason")
    diff: bool = flag("show which operators went and came, by rule")
    why: tuple[str, ...] = option(
        "ask why a rule did not fire at a node: RULE@NODE; several times", default=(), metavar="QUESTION"
    )
    input: tuple[str, ...] = option(
        "inputs to check on as well: inputs.npz, x=array.npy, x=photo.png; a name again begins the next input",
        default=(),
        metavar="SPEC",
    )
    no_verify: bool = flag("write without checking; the report says so")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def replaces(self) -> str:
        return self.model

    def run(self) -> Report:
        from onnxsmith.problem import problem
        from onnxsmith.simplifier.simplify import simplify

        if not self.output:
            raise problem("simplify/no-output", "no file to write was named", fix="add -o simplified.onnx")
        return simplify(
            self.model,
            self.output,
            only=self.only,
            skip=self.skip,
            exactness=self.exactness,
            opset=self.opset,
            target=self.target,
            inline_functions=self.inline_functions,
            max_growth=self.max_growth,
            explain=self.explain,
            diff=self.diff,
            why=self.why,
            inputs=self.input,
            verify=self.verify if not self.no_verify else False,
            save=self.save,
        ).report
