"""Runs in the child process of `arithmetic.py` for NNCF: the only module that imports nncf.

The requests name a model file and a file to write. What is quantised, and by which algorithms, is decided by the
caller.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.model.files.save import save_for_now
from onnxsmith.precision.unsharing import unshare
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.runtimes import _wire
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Outputs, Value

_UNUSED = ("torch", "openvino", "openvino_telemetry")
"""Packages that NNCF imports if they are installed. It needs none of them for an ONNX model: torch and OpenVINO take
seconds to import, and openvino-telemetry sends data about the usage to Intel."""


def answer(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """Quantises the model at `path` and writes it to `out`."""
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type] # makes their import fail
    logging.disable(logging.WARNING)
    model = ir.external_data.load_to_model(ir.load(request["path"]))
    unshare(model, request["exclude"])
    do = {"static": _static, "four_bits": _four_bits}[request["do"]]
    made = do(ir.to_proto(model), request["exclude"], request["options"])
    save_for_now(ir.from_proto(made), Path(request["out"]))
    return {}, {}


def _static(model: Any, exclude: list[str], options: dict[str, Any]) -> Any:
    """Quantises weights and activations: pairs of QuantizeLinear and DequantizeLinear around the nodes."""
    import nncf
    from nncf.quantization.advanced_parameters import (
        AdvancedQuantizationParameters,
        OverflowFix,
        QuantizationParameters,
    )

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
    return problem(
        "quantize/refused",
        "NNCF refuses the model",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="keep the nodes in question in float32: --keep keep.txt; or try --to int8 or --to int4",
    )


def main() -> None:
    """Answers requests until the caller closes its end."""
    serve(answer, _translate)
