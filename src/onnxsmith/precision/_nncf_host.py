"""Quantises models with NNCF, in a child process that `quantisation_process.py` starts.

No other module imports nncf. A request names a model file and a file to write; the caller decides which nodes are
quantised and by which algorithms.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.save import save_for_now
from onnxsmith.precision.unsharing import unshare
from onnxsmith.runtimes import _call_limits, _wire
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Outputs, Value

_UNUSED = ("torch", "openvino", "openvino_telemetry")
"""Packages that NNCF imports if they are installed. It needs none of them for an ONNX model: torch and OpenVINO take
seconds to import, and openvino-telemetry sends data about the usage to Intel."""


class _Absent(MetaPathFinder, Loader):
    """Makes the packages of `_UNUSED` look as if they were not installed. None in `sys.modules` would also do so, but
    scipy mistakes None for the package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return (
            ModuleSpec(fullname, self) if fullname in _UNUSED else None
        )  # NNCF treats a spec without an origin as not installed

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        raise ModuleNotFoundError(f"{spec.name} is not used here", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: `create_module` has raised before."""


def answer(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """Quantises the model at `path` and writes it to `out`."""
    if request["do"] == "about":  # a call without work, after which it waits for the next model
        return {}, {}
    if not any(isinstance(one, _Absent) for one in sys.meta_path):
        sys.meta_path.insert(0, _Absent())
    logging.disable(logging.WARNING)
    model = ir.external_data.load_to_model(ir.load(request["path"]))
    unshare(model, request["exclude"])
    do = {"static": _static, "four_bits": _four_bits}[request["do"]]
    made = do(ir.to_proto(model), request["exclude"], request["options"])
    save_for_now(ir.from_proto(made), Path(request["out"]))
    return {}, {}


def _static(model: Any, exclude: list[str], options: dict[str, Any]) -> Any:
    """Quantises weights and activations: puts pairs of QuantizeLinear and DequantizeLinear around the nodes."""
    import nncf
    from nncf.quantization.advanced_parameters import (
        AdvancedQuantizationParameters,
        OverflowFix,
        QuantizationParameters,
    )
    from nncf.quantization.range_estimator import RangeEstimatorParametersSet

    return nncf.quantize(
        model,
        _dataset(options["samples"]),
        preset=nncf.QuantizationPreset.MIXED,
        target_device=nncf.TargetDevice.CPU,
        subset_size=len(options["samples"]),
        model_type=nncf.ModelType.TRANSFORMER if options["smooth"] else None,
        ignored_scope=nncf.IgnoredScope(names=exclude),
        advanced_parameters=AdvancedQuantizationParameters(
            overflow_fix=OverflowFix.ENABLE if options["reduce_range"] else OverflowFix.DISABLE,
            disable_bias_correction=not options["correct_biases"],
            batchwise_statistics=False,
            # onnxruntime has no kernel for a Conv whose input has a scale for each channel
            activations_quantization_params=QuantizationParameters(per_channel=False),
            # NNCF's default is the mean of the samples' extremes, which clips every second sample
            activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX,
        ),
    )


def _four_bits(model: Any, exclude: list[str], options: dict[str, Any]) -> Any:
    """Quantises the constant weights of MatMul in blocks, to 4 bits."""
    import nncf

    mode = nncf.CompressWeightsMode.INT4_SYM if options["symmetric"] else nncf.CompressWeightsMode.INT4_ASYM
    return nncf.compress_weights(
        model,
        mode=mode,
        ratio=1.0,
        group_size=options["block"],
        all_layers=True,
        ignored_scope=nncf.IgnoredScope(names=exclude),
        dataset=_dataset(options["samples"]),
        subset_size=len(options["samples"]),
        awq=True,
        scale_estimation=True,
    )


def _dataset(paths: list[str]) -> Any:
    import nncf

    return nncf.Dataset(paths, _read)


def _read(path: str) -> dict[str, Value]:
    with Path(path).open("rb") as file:
        return _wire.receive(file)[1]


def _translate(error: Exception) -> OnnxsmithError:
    said = f"{type(error).__name__}: {error}"
    return problem(
        "runtime/failed"
        if _call_limits.is_shortage(said)
        else "quantize/refused",  # the caller makes it runtime/memory
        "NNCF refuses the model",
        why=said[:600],
        fix="keep the nodes that the message names in float32: --keep keep.txt; or try --to int8 or --to int4",
    )


def main() -> None:
    """Answers requests until the caller closes its end."""
    serve(answer, _translate)
