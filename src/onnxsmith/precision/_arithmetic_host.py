"""Quantises models with onnxruntime.quantization, in a child process that `quantisation_process.py` starts.

No other module imports onnxruntime.quantization. A request names a model file and a file to write; the caller decides
which nodes are quantised and with which ranges.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.precision.gptq_blocks import compensated
from onnxsmith.precision.scaled_blocks import Array, Blocks, packed, unpacked
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Outputs, Value

_EXTERNAL = 1_900_000_000
"""From this many bytes on, weights are written to a file of their own, as in `graph/files/save.py`."""
_K_QUANT = 4
"""The most bits for which k-quant is worth its time. A choice: with 8 bits its errors are at most a percent smaller."""


def answer(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """Quantises the model at `path` and writes it to `out`. For `blocks`, quantises the matrix in `values` and returns
    its blocks."""
    if request["do"] == "about":  # a call without work, after which it waits for the next model
        return {}, {}
    logging.disable(logging.WARNING)  # it advises its own preprocessing; the model is prepared already
    if request["do"] == "blocks":
        return {}, _blocks(request["options"], {name: np.asarray(value) for name, value in values.items()})
    {"static": _static, "dynamic": _dynamic}[request["do"]](request, request["options"])
    return {}, {}


def _static(request: dict[str, Any], options: dict[str, Any]) -> None:
    """Quantises weights and activations: puts pairs of QuantizeLinear and DequantizeLinear around the nodes."""
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


def _blocks(options: dict[str, Any], values: dict[str, Array]) -> Outputs:
    """Quantises a float32 `matrix` in blocks of its columns. With the second `moments` of its inputs, GPTQ lets later
    rows compensate for the errors of earlier rows."""
    bits, block, symmetric = options["bits"], options["block"], options["symmetric"]

    def rounded(matrix: Array) -> Blocks:
        return (
            _rounded(matrix, bits, block, symmetric) if symmetric or bits > _K_QUANT else _nearer(matrix, bits, block)
        )

    matrix = values["matrix"]
    found = compensated(matrix, values["moments"], block, rounded) if "moments" in values else rounded(matrix)
    result: Outputs = {"data": found.data, "scales": found.scales}
    return result if found.zeros is None else result | {"zeros": found.zeros}


def _nearer(matrix: Array, bits: int, block: int) -> Blocks:
    """Rounds each block to the nearest step, or by k-quant if that has the smaller error. k-quant alone has a large
    error if all elements of a block have one sign, because its zero point is clipped."""
    plain, other = _rounded(matrix, bits, block, False), _k_quant(matrix, bits, block)
    return other.part(other.error(matrix) < plain.error(matrix), plain)


def _rounded(matrix: Array, bits: int, block: int, symmetric: bool) -> Blocks:
    """Rounds each element to the nearest step. The scale of a block comes from its largest element."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, DefaultWeightOnlyQuantizer

    config = DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric, bits=bits)
    data, scales, zeros = DefaultWeightOnlyQuantizer(config).qbits_block_quant(matrix)
    return Blocks(len(matrix), bits, data, scales, None if symmetric else unpacked(zeros, bits, data.shape[1]))


def _k_quant(matrix: Array, bits: int, block: int) -> Blocks:
    """Takes for each block the scale and zero point with the least squared error of twenty candidates, as in llama.cpp.
    Calls the function behind MatMulNBitsQuantizer, which itself packs zero points wrongly if a column has an odd number
    of blocks."""
    from onnxruntime.quantization.neural_compressor.weight_only import pad_tensor, quant_tensor_k_quant_cpu

    rows, columns = matrix.shape
    count = -(-rows // block)
    with np.errstate(divide="ignore", invalid="ignore"):  # blocks whose elements are equal divide by 0
        numbers, scales, zeros = quant_tensor_k_quant_cpu(pad_tensor(matrix, block, count).T, bits, block)
    data = packed(numbers.astype(np.uint8), bits).reshape(columns, count, -1)
    return Blocks(rows, bits, data, scales.reshape(columns, count).astype(np.float32), zeros.reshape(columns, count))


def _write(made: Any, out: str) -> None:
    large = made.model.ByteSize() > _EXTERNAL
    made.save_model_to_file(out, use_external_data_format=large)


def _translate(error: Exception) -> OnnxsmithError:
    return problem(
        "quantize/refused",
        "onnxruntime's quantiser refuses the model",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="keep the nodes that the message names in float32: --keep keep.txt; or try another --to",
    )


def main() -> None:
    """Answers requests until the caller closes its end."""
    serve(answer, _translate)
