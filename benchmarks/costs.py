"""`inspect --costs`: multiply-adds at two sizes, beside counts from the shapes of all tensors of a run.

    python benchmarks/costs.py [--folder .bench-costs] [--only CASE …]

A case is NETWORK-EXPORTER: a network of `models/architectures.py`, exported with open sizes by `ts` (the TorchScript
exporter) or `new` (torch's exporter). The counts beside are made here, without onnxsmith: onnxruntime runs the file
with every tensor as an output, and the products of Conv, ConvTranspose, Gemm, MatMul, Einsum and recurrent layers are
counted from these shapes. Prints a line for each case, then how many are within 1% at both sizes, or marked as a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measuring.cases import run

NETWORKS = (
    "albert", "bart", "bert", "clip_vision", "convnext", "deberta_v2", "distilbert", "gemma", "gpt2", "gpt2_cache",
    "gpt_neox", "gru", "llama", "llama_cache", "lstm", "mistral", "mobilenet_v2", "opt", "phi", "qwen2", "resnet",
    "segformer", "separable", "swin", "t5", "t5_encoder", "vit", "wav2vec2", "yolos", "dinov2",
)  # fmt: skip
CASES = tuple(f"{name}-{('ts', 'new')[at % 2]}" for at, name in enumerate(NETWORKS)) + tuple(
    f"{name}-{('new', 'ts')[at % 2]}" for at, name in enumerate(NETWORKS[:10])
)
FOLDER = Path(__file__).parent.parent / ".bench-costs"
NEAR = 0.01


def one(case: str, folder: Path) -> str:
    """Exports the network of a case if its file is not there, and compares the counts at two sizes."""
    import onnx
    import torch
    from models.architectures import build

    import onnxsmith
    from onnxsmith.base.report.parts.model_summary import Costs

    name, way = case.split("-")
    torch.manual_seed(0)
    network = build(name)
    network.module.eval()
    file = folder / f"{case}.onnx"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        dims = {key: dict(axes) for key, axes in network.dynamic.items()}
        with torch.no_grad():
            options: dict[str, Any] = {"dynamo": False, "dynamic_axes": dims}
            if way == "new":
                shapes = {key: {at: torch.export.Dim(dim) for at, dim in axes.items()} for key, axes in dims.items()}
                given = tuple(shapes.get(key) for key in network.inputs)
                options = {"dynamo": True, "external_data": False, "verbose": False, "dynamic_shapes": given}
            torch.onnx.export(
                network.module, tuple(network.inputs.values()), file, input_names=list(network.inputs), **options
            )
    model = onnx.load(file)
    said, worst = [], 0.0
    for more in (0, 1):
        feeds = {key: _longer(value, network.dynamic.get(key, {}), more) for key, value in network.inputs.items()}
        feeds = {value.name: feeds[value.name] for value in model.graph.input if value.name in feeds}
        sizes = {
            dim.dim_param: feeds[value.name].shape[axis]
            for value in model.graph.input if value.name in feeds
            for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param
        }  # fmt: skip
        true = counted(model, feeds)
        found = onnxsmith.inspect(file, costs=True, sizes=sizes).part(Costs).macs
        apart = abs(found.at - true) / max(true, 1)
        said.append(f"{found.at:,} of {true:,}{' (a guess)' if found.is_guess else ''}")
        worst = max(worst, 0.0 if found.is_guess else apart)
    return f"{'yes ' if worst <= NEAR else 'no  '} {'; '.join(said)}"


def _longer(value: Any, axes: Mapping[int, str], more: int) -> Any:
    """Returns an input with `more` further steps on each open axis that is no batch, and with another batch."""
    import numpy as np

    array = np.asarray(value)
    for axis in axes if more else ():
        array = np.concatenate([array, array.take(range(min(more, array.shape[axis])), axis)], axis)
    return array


def counted(model: Any, feeds: Mapping[str, Any]) -> int:
    """Counts the multiply-adds of one run, from the shapes of all tensors."""
    import onnx
    import onnxruntime

    made = onnx.ModelProto()
    made.CopyFrom(model)
    kept = {value.name for value in made.graph.output}
    for node in made.graph.node:
        for name in node.output:
            if name and name not in kept:
                made.graph.output.append(onnx.ValueInfoProto(name=name))
                kept.add(name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    found = session.run(None, {one.name: feeds[one.name] for one in session.get_inputs()})
    shapes = {one.name: tuple(one.dims) for one in made.graph.initializer}
    shapes |= {name: value.shape for name, value in feeds.items()}
    shapes |= {one.name: value.shape for one, value in zip(session.get_outputs(), found, strict=True)}
    return sum(_of(node, shapes) for node in made.graph.node)


def _of(node: Any, shapes: Mapping[str, tuple[int, ...]]) -> int:
    import onnx

    given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    at = [shapes.get(name, ()) for name in node.input]
    out = shapes.get(node.output[0], ())
    match node.op_type:
        case "Conv":
            return math.prod(out) * math.prod(at[1][1:])
        case "ConvTranspose":
            return math.prod(at[0]) * math.prod(at[1][1:])
        case "MatMul":
            return math.prod(out) * at[0][-1]
        case "Gemm":
            return math.prod(out) * (at[0][0] if given.get("transA") else at[0][1])
        case "LSTM" | "GRU" | "RNN":
            steps, batch = at[0][:2] if not given.get("layout") else (at[0][1], at[0][0])
            return steps * batch * (math.prod(at[1]) + math.prod(at[2]))
        case "Einsum":
            terms = given["equation"].decode().replace(" ", "").partition("->")[0].split(",")
            sizes = {letter: size for term, shape in zip(terms, at, strict=True) for letter, size in zip(term, shape)}  # noqa: B905
            return math.prod(sizes.values()) if len(terms) > 1 else 0
    return 0


if __name__ == "__main__":
    run(__file__, __doc__, one, CASES, FOLDER, len(CASES), "are within 1% at both sizes, or marked")
