"""`onnxsmith simplify in.onnx -o out.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Simplify(Command):
    """Simplify an ONNX model and verify the result.

    Compares the result with the original on generated inputs. Writes the file if they agree.
    """

    name = "simplify"
    usual_line = "onnxsmith simplify net.onnx -o smaller.onnx"
    usual_options = (
        "output",
        "target",
        "opset",
        "set_dim",
        "keep_output",
        "exactness",
        "explain",
        "diff",
        "input",
        "html",
    )
    examples = (
        ("Show what each rule removed", "onnxsmith simplify net.onnx -o smaller.onnx --diff"),
        (
            "Fix the batch size, so that more values can be computed in advance",
            "onnxsmith simplify net.onnx -o smaller.onnx --set-dim batch=1",
        ),
        (
            "Allow only rewrites that keep the arithmetic",
            "onnxsmith simplify net.onnx -o smaller.onnx --exactness bitwise",
        ),
    )

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    output: str = option("the file to write", short="-o", metavar="FILE", default="", writes=True)
    only: tuple[str, ...] = option("apply only this rule or pattern (fuse/*); repeatable", default=(), metavar="RULE")
    skip: tuple[str, ...] = option("do not apply this rule or pattern; repeatable", default=(), metavar="RULE")
    exactness: str | None = option(
        "which rewrites to allow: bitwise (same arithmetic, and same bits unless a runtime chooses "
        "another kernel), value (also equal numbers with other bits, as 0.0 for -0.0) or reassociates "
        "(also other rounding); default: reassociates, except before nodes that round to integers",
        metavar="HOW",
    )
    opset: str | None = option(
        "convert the model to this opset first, so that rules may use its operators; auto: the opset in "
        "which most rules apply",
        metavar="OPSET",
    )
    target: str | None = option(
        "where the model will run: uses the target's newest opset, IR version and operators, checks the "
        "file with the target, and rewrites nodes that the target refuses",
        metavar="NAME",
        reads=True,
    )
    contrib: bool = flag(
        "with --target onnxruntime: fuse nodes into operators of com.microsoft; no other runtime can read the file then"
    )
    inline_functions: bool = flag("inline model-local functions first")
    fix_defaults: bool = flag("turn initializers that are also graph inputs into constants, so that rules may use them")
    set_dim: tuple[str, ...] = option(
        "fix a symbolic dimension to a size: batch=1, or x:0=1 for an axis of the input x; repeatable",
        default=(),
        metavar="DIM=SIZE",
    )
    keep_open: tuple[str, ...] = option(
        "make a fixed axis dynamic, and keep the nodes that compute sizes from it: x:0=batch, or batch "
        "for the first axis of each input; repeatable",
        default=(),
        metavar="AXIS",
    )
    keep_output: tuple[str, ...] = option(
        "keep only this graph output; * stands for any characters in a name; repeatable", default=(), metavar="NAME"
    )
    drop_output: tuple[str, ...] = option(
        "remove this graph output; * stands for any characters in a name; repeatable", default=(), metavar="NAME"
    )
    max_growth: float | None = option(
        "how much larger folded constants may make the file, as a share of its size; default: 1% or 1 MiB, whichever "
        "is more, and at most three times the size",
        metavar="SHARE",
    )
    explain: bool = flag("list every rewrite, and every refused rewrite with the reason")
    diff: bool = flag("show the operators that each rule removed and added")
    why: tuple[str, ...] = option(
        "explain why a rule, or a step that the report names, did not apply at a node: RULE@NODE; repeatable",
        default=(),
        metavar="QUESTION",
    )
    input: tuple[str, ...] = option(
        "additional inputs to verify on: inputs.npz, x=array.npy, x=photo.png; a repeated name starts the next set of"
        " inputs",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    no_verify: bool = flag("write the file without verifying it; the report states this")
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def replaces(self) -> str:
        return self.model

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem

        if not self.output:
            raise problem("simplify/no-output", "no output file was given", fix="add -o simplified.onnx")
        from onnxsmith.optimizer.simplify import simplify

        report = simplify(
            self.model,
            self.output,
            only=self.only,
            skip=self.skip,
            exactness=self.exactness,
            opset=self.opset,
            target=self.target,
            contrib=self.contrib,
            inline_functions=self.inline_functions,
            fix_defaults=self.fix_defaults,
            set_dim=self.set_dim,
            keep_open=self.keep_open,
            keep_output=self.keep_output,
            drop_output=self.drop_output,
            max_growth=self.max_growth,
            explain=self.explain,
            diff=self.diff,
            why=self.why,
            inputs=self.input,
            verify=self.verify if not self.no_verify else False,
            save=self.save,
        ).report
        if self.target is None or (self.contrib and not self.no_verify):
            return report  # onnxruntime's own operators run only there, and the comparison has just run them
        from onnxsmith.deployment.checking.target_follow_up import checked_afterwards

        return checked_afterwards(report, self.target, self.verify, self.save)
