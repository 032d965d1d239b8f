"""`export`: exports a torch module to an ONNX file and compares the file with the module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import problem
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.exporter import factory
from onnxsmith.exporter.export_settings import Settings
from onnxsmith.exporter.foreseen_errors import foreseen
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Dynamic, is_auto
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.runtimes import base as runtimes

if TYPE_CHECKING:
    from onnxsmith.optimizer.target_form import ForTarget

_USUAL_OPSET = 20
"""torch 2.13's exporter writes this opset by default."""


@identifies()
def export(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    output: str | Path | BinaryIO | None = None,
    inputs: Sequence[str] = (),
    dynamic: Dynamic = None,
    opset: int | None = None,
    target: str | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    drop_unused: bool = False,
    weights: bool = True,
    simplify: bool = True,
    strategy: str | None = None,
    as_traced: bool = False,
    state: str | Sequence[str] | None = None,
    task: str | None = None,
    trust_remote_code: bool = False,
    custom_translation_table: Mapping[Any, Any] | None = None,
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Exports a torch module to ONNX and verifies the file against eager PyTorch.

    `model` is a module, or a target (`file.py:factory`, `package.module:factory`). `args` and `kwargs` are example
    inputs of `forward`, nested as in a call; `inputs` are examples in the command line's form. A module in training
    mode is exported in evaluation mode, and its mode is restored.

    `output` is a path, or a binary file to write to. The model is written if it agrees with the module; `save` has the
    options of the file. With `weights=False` the parameters become graph inputs; the model is verified before its
    weights are left out. `drop_unused` removes graph inputs that no node reads. `verify` has the options of the
    comparison with the module; with `verify=False` nothing is compared, and the report says so.

    `dynamic` names the dynamic axes: `"x:0=batch,2=height"`, `{"x": {0: "batch"}}`, a mapping or a list of
    `torch.export.Dim`s as for `torch.export`, or `"auto"`: all axes that the module accepts at other sizes and that a
    graph can express. `opset` is an error if the model cannot be written in it; None leaves it to the exporter.
    `target` is the name of a target of `check`, or `profile:FILE.toml`: the target can read the file's opset and IR
    version, and the simplification makes no operator that the target refuses. `check` finds and rewrites the other
    nodes that the target refuses.

    Strategies (ways to capture) are tried in order until the graph of one agrees with the module. The report says which
    strategies failed and why. Some strategies replace lines of the module while it is traced; the report shows those
    lines. `strategy` names the only strategy to try, by its class in `exporter/strategies`: `torch-export`, or
    `torchscript`. The strategy `torchscript` turns Python values that were read from a tensor into constants; such a
    graph is refused unless the strategy was named.

    The module runs as its users call it: in evaluation mode, without gradients, with torch's fused kernels. Some
    modules compute other results while they are traced: by the formula of a fused kernel, or in a branch on
    `torch.compiler.is_exporting()`. If such a difference is found, nothing is written. With `as_traced` the graph is
    then compared with the traced code path.

    `state` names tensors of the module that forward changes and a later call reads: buffers, attributes, items of a
    list, by path (`encoder.cache`) or pattern (`*.cache`), or `"auto"`: all of them. Each becomes an input
    (`state.encoder.cache`) and an output (`next_state.encoder.cache`) of the graph. The report and the file's metadata
    (`onnxsmith.state`) have the pairs with the values of the first call. The file is run several times in a row, each
    time with the state that the run before returned, and compared with as many calls of the module. Without `state` the
    headline names the state that the graph drops.

    With `task` (`text-generation-with-past`, `image-classification`, … or `auto`), `model` is a local folder with a
    saved model of the transformers library, or a `config.json`. The task determines example inputs, names and dynamic
    axes; `dynamic` replaces those axes, but `"auto"` keeps them. Python code that the folder brings along runs only
    with `trust_remote_code`, which transformers calls so, too; the report names its files.

    `custom_translation_table` translates operators in this export only: operator → a function of onnxscript, as
    `torch.onnx.export` takes it, or anything else that `register` takes.

    Raises:
        OnnxsmithError: no other exception. `export/…` if no strategy can capture the module (the first strategy's
            problem); `verify/…` and `runtime/…` if the verification could not run; `save/…` if the file could not be
            written.
    """
    _check_arguments(opset, output, is_misplaced=trust_remote_code and task is None)
    wanted = _target(target) if target is not None else None
    if wanted is not None and opset is None:
        opset = wanted.opset_below(_USUAL_OPSET)
    chosen = Settings(
        dynamic, opset, tuple(input_names), tuple(output_names), drop_unused, weights, simplify, strategy, as_traced,
        verifying(verify), save, wanted, custom_translation_table, _names(state),
    )  # fmt: skip
    runtimes.get("torch-eager")  # raises a problem that says what to install if torch is missing
    from onnxsmith.exporter.export_run import Job
    from onnxsmith.exporter.inputs.examples import with_inputs
    from onnxsmith.exporter.module.evaluation import evaluating
    from onnxsmith.exporter.strategy_choice import strategies
    from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
    from onnxsmith.exporter.tracing.on_cpu import on_cpu
    from onnxsmith.exporter.translating.register import also

    refuse_loss([output] if isinstance(output, str | Path) else (), [model, inputs])
    strategies(strategy)
    with Clock() as clock, foreseen():
        with stage("load"):
            if task is None:
                name, torch_model = factory.resolve(model, args, kwargs)
            else:
                name, torch_model, chosen = _pretrained(model, args, kwargs, task, chosen, trust_remote_code)
            torch_model = on_cpu(with_inputs(torch_model, inputs))
        defaults: Any = {} if task is None or (dynamic and not is_auto(dynamic)) else chosen.dynamic
        with ExitStack() as stack:
            was_training = stack.enter_context(evaluating(torch_model.module))
            stack.enter_context(also(custom_translation_table))
            if chosen.state:
                from onnxsmith.exporter.state import state_axes
                from onnxsmith.exporter.state.state_arguments import carrying

                torch_model, carried = stack.enter_context(carrying(torch_model, chosen.state))
                axes = state_axes.dynamic(torch_model, carried, chosen.dynamic)
                chosen = replace(chosen, carried=carried, dynamic=axes)
            while True:
                try:
                    return Job(name, torch_model, chosen, was_training).run(output, clock)
                except FrozenAxisError as error:
                    from onnxsmith.exporter.pretrained import unsupported_axes

                    left = unsupported_axes.without(torch_model, defaults, error.axes)
                    if left is None:
                        raise
                    torch_model, defaults = left
                    chosen = replace(chosen, dynamic=defaults)


def _target(name: str) -> ForTarget:
    from onnxsmith.optimizer.target_form import ForTarget  # imports pydantic, which only a target needs

    return ForTarget.named(name)


def _check_arguments(opset: Any, output: Any, *, is_misplaced: bool) -> None:
    """Refuses arguments of another type than the signature says, which fail late and without a hint otherwise, and
    `trust_remote_code` for what is no folder."""
    if is_misplaced:
        raise problem(
            "export/arguments",
            "trust_remote_code is for a folder of transformers, and no task was given",
            why="a factory is Python code already, which an export always runs",
            fix="leave it out; or add a task, such as auto, if the target is such a folder",
        )
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int)):
        shown = f"opset={opset}" if str(opset).isdecimal() else "opset=20"
        raise problem("export/arguments", f"the opset has to be a number, not {opset!r}", fix=f"write {shown}")
    if output is not None and not isinstance(output, str | Path) and not hasattr(output, "write"):
        raise problem(
            "export/arguments",
            f"output has to be a path or a file that is open for writing, not {output!r}",
            fix='write output="model.onnx"',
        )


def _names(state: str | Sequence[str] | None) -> tuple[str, ...]:
    given = (state,) if isinstance(state, str) else tuple(state or ())
    return tuple(name.strip() for text in given for name in str(text).split(",") if name.strip())


def _pretrained(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, task: str, chosen: Settings, trust: bool
) -> tuple[str, factory.TorchModel, Settings]:
    from onnxsmith.exporter.pretrained import pretrained_folder

    if factory.is_module(model):
        raise problem(
            "export/task",
            "both a task and a module were given",
            fix="remove the task, or give the folder of the saved model",
        )
    found = pretrained_folder.load(str(model), task, trust=trust)
    torch_model, dynamic = found.model, found.dynamic
    if args or kwargs:
        torch_model = replace(torch_model, args=tuple(args), kwargs=dict(kwargs or {}))
        dynamic = {name: axes for name, axes in dynamic.items() if name in (kwargs or {})}
    if not chosen.dynamic or (dynamic and is_auto(chosen.dynamic)):
        chosen = replace(chosen, dynamic=dynamic, meant=found.ranges)
    return str(model), torch_model, chosen
