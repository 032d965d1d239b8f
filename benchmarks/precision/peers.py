"""The other quantisers, each used as its own documentation says, at its defaults.

`PEERS` has them by name: a function of the float32 file, the calibration items and the file to write. What one raises
is its answer.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

Item = tuple[dict[str, np.ndarray], Any]
Peer = Callable[[Path, Sequence[Item], Path], Path]

MODELOPT = Path(__file__).parents[2] / ".venv-modelopt" / "bin" / "python"
"""The Python that has ModelOpt, which needs an older onnx; the variable MODELOPT_PYTHON names another."""


class Reader:
    """The calibration items, as onnxruntime's calibrators ask for them."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.left: Iterator[Item] = iter(items)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next feeds, or None at the end."""
        item = next(self.left, None)
        return None if item is None else item[0]


def dynamic(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`quantize_dynamic`."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(_processed(model, out), out)
    return out


def static(model: Path, calibration: Sequence[Item], out: Path, **options: bool) -> Path:
    """`quantize_static`."""
    from onnxruntime.quantization import quantize_static

    quantize_static(_processed(model, out), out, Reader(calibration), **options)
    return out


def static_per_channel(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`quantize_static`, with scales of channels and seven bits, as advised for processors without VNNI."""
    return static(model, calibration, out, per_channel=True, reduce_range=True)


def _processed(model: Path, out: Path) -> Path:
    """The model after `quant_pre_process`, as the documentation asks; without symbolic shapes if they fail."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path = out.with_name(f"{out.stem}.processed.onnx")
    try:
        quant_pre_process(model, path)
    except Exception as error:  # noqa: BLE001 - it raises Exception itself
        print(f"quant_pre_process: {error}; again with skip_symbolic_shape=True", flush=True)
        quant_pre_process(model, path, skip_symbolic_shape=True)
    return path


def int4(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`MatMulNBitsQuantizer`: four bits, blocks of 128, rounded to the nearest."""
    return _int4(model, out, None)


def int4_hqq(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`MatMulNBitsQuantizer` with half-quadratic quantisation."""
    from onnxruntime.quantization.matmul_nbits_quantizer import HQQWeightOnlyQuantConfig

    return _int4(model, out, HQQWeightOnlyQuantConfig())


def int4_k_quant(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`MatMulNBitsQuantizer` with k-quant."""
    from onnxruntime.quantization.matmul_nbits_quantizer import KQuantWeightOnlyQuantConfig

    return _int4(model, out, KQuantWeightOnlyQuantConfig())


def _int4(model: Path, out: Path, config: Any) -> Path:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(model), algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(str(out), False)
    return out


def float16(model: Path, calibration: Sequence[Item], out: Path, **options: bool) -> Path:
    """`convert_float_to_float16`, inputs and outputs too."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(model), **options), out)
    return out


def float16_keep_io(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`convert_float_to_float16` with `keep_io_types`."""
    return float16(model, calibration, out, keep_io_types=True)


def nncf(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """`nncf.quantize`."""
    import nncf as tool

    data = tool.Dataset(list(calibration), lambda item: item[0])
    onnx.save(tool.quantize(onnx.load(model), data), out)
    return out


def modelopt_autocast(model: Path, calibration: Sequence[Item], out: Path) -> Path:
    """AutoCast of ModelOpt, to float16, with calibration data; in an environment of its own."""
    python = Path(os.environ.get("MODELOPT_PYTHON", MODELOPT))
    if not python.exists():
        raise FileNotFoundError(f"{python}: make .venv-modelopt/.installed")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "calibration.npz"
        np.savez(data, **calibration[0][0])
        command = [python, "-m", "modelopt.onnx.autocast", "--onnx_path", model, "--output_path", out]
        done = subprocess.run([*command, "--calibration_data", data], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("".join((done.stderr or done.stdout).strip().splitlines()[-1:]))
    return out


PEERS: dict[str, Peer] = {
    "ort-float16": float16,
    "ort-float16-keep-io": float16_keep_io,
    "modelopt-autocast": modelopt_autocast,
    "ort-dynamic": dynamic,
    "ort-static": static,
    "ort-static-per-channel": static_per_channel,
    "nncf": nncf,
    "ort-int4": int4,
    "ort-int4-hqq": int4_hqq,
    "ort-int4-k-quant": int4_k_quant,
}
