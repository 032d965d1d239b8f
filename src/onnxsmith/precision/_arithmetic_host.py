"""Runs in the child process of `arithmetic.py`: the only module that imports onnxruntime.quantization.

The requests name a model file and a file to write. What is quantised, and by which ranges, is decided by the caller.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Outputs, Value

_EXTERNAL = 1_900_000_000
"""Bytes of weights from which on they are written to a file of their own, as in `model/files/save.py`."""


def answer(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """Quantises the model at `path` and writes it to `out`."""
    logging.disable(logging.WARNING)  # it advises its own preprocessing, which was done by other means
    {"static": _static, "dynamic": _dynamic, "four_bits": _four_bits}[request["do"]](request, request["options"])
    return {}, {}


def _static(request: dict[str, Any], options: dict[str, Any]) -> None:
    """Quantises weights and activations: pairs of QuantizeLinear and DequantizeLinear around the nodes."""
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer

    ranges = {
        name: (np.array(low, np.float32), np.array(high, np.float32)) for name, (low, high) in options["ranges"].items()
    }
    quantizer = QDQQuantizer(
        load_model_with_shape_infer(Path(request["path"])),
        options["per_channel"],
        options["reduce_range"],
        QuantType.from_string(options["weights"]),
        QuantType.from_string(options["activations"]),
        TensorsData(CalibrationMethod.MinMax, ranges),
        [],
        request["exclude"],
        options["operators"],
        {
            "ActivationSymmetric": options["symmetric"],
            "WeightSymmetric": True,
            "QDQKeepRemovableActivations": True,  # layers keep their names, and runtimes fuse them anyway
            **options["more"],
        },
    )
    quantizer.quantize_model()
    _write(quantizer.model, request["out"])


def _dynamic(request: dict[str, Any], options: dict[str, Any]) -> None:
    """Quantises weights; activations are quantised when the model runs."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        request["path"],
        request["out"],
        op_types_to_quantize=options["operators"],
        per_channel=options["per_channel"],
        reduce_range=options["reduce_range"],
        weight_type=QuantType.from_string(options["weights"]),
        nodes_to_exclude=request["exclude"],
        use_external_data_format=Path(request["path"]).stat().st_size > _EXTERNAL,
        extra_options={"WeightSymmetric": True, "DefaultTensorType": 1},
    )


def _four_bits(request: dict[str, Any], options: dict[str, Any]) -> None:
    """Quantises the constant weights of MatMul in blocks, to 4 bits."""
    from onnxruntime.quantization import QuantFormat, matmul_nbits_quantizer
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer

    form = QuantFormat[options["form"]]
    block, symmetric = options["block"], options["symmetric"]
    configs = {
        "default": lambda: matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(
            block_size=block, is_symmetric=symmetric, accuracy_level=options["accuracy_level"], quant_format=form
        ),
        "k_quant": lambda: matmul_nbits_quantizer.KQuantWeightOnlyQuantConfig(quant_format=form),
        "hqq": lambda: matmul_nbits_quantizer.HQQWeightOnlyQuantConfig(block_size=block, quant_format=form),
    }
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        load_model_with_shape_infer(Path(request["path"])),
        nodes_to_exclude=request["exclude"],
        algo_config=configs[options["algorithm"]](),
    )
    quantizer.process()
    _write(quantizer.model, request["out"])


def _write(made: Any, out: str) -> None:
    large = made.model.ByteSize() > _EXTERNAL
    made.save_model_to_file(out, use_external_data_format=large)


def _translate(error: Exception) -> OnnxsmithError:
    return problem(
        "quantize/refused",
        "onnxruntime's quantiser refuses the model",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="keep the nodes in question in float32: --keep keep.txt; or try another --to",
    )


def main() -> None:
    """Answers requests until the caller closes its end."""
    serve(answer, _translate)
