"""How long the damage of each layer takes to measure, in plain evaluations of the model.

    python benchmarks/sensitivity.py [--layers 300] [--samples 100]

A plain evaluation runs the float32 model on each sample of the test. The damage of every layer in int8 is measured on
the samples that `quantize` takes for it, together with the quantised variant that it needs.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.precision import ranges
from onnxsmith.precision.damage import damage
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.forms.base import form
from onnxsmith.precision.methods.base import Work
from onnxsmith.precision.methods.int8 import Int8
from onnxsmith.precision.model_preparation import prepared
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.precision.variant_evaluation import _DAMAGED_ON
from onnxsmith.runtimes.base import get

WIDTH, ROWS = 128, 64


def network(layers: int) -> ir.Model:
    """Products with constant weights, each followed by a Relu and added to what came before."""
    lines = ["a0 = Relu(x)"]
    for at in range(layers):
        lines += [f"p{at} = MatMul(a{at}, w{at})", f"r{at} = Relu(p{at})", f"a{at + 1} = Add(a{at}, r{at})"]
    inputs = ", ".join(f"float[{WIDTH},{WIDTH}] w{at}" for at in range(layers))
    text = " ".join(lines) + f" y = Identity(a{layers})"
    model = from_text(
        f'<ir_version: 10, opset_import: ["": 18]> g (float[{ROWS},{WIDTH}] x, {inputs}) => (float[{ROWS},{WIDTH}] y) '
        f"{{ {text} }}"
    )
    draw = np.random.default_rng(0)
    for value in list(model.graph.inputs[1:]):
        array = (draw.standard_normal((WIDTH, WIDTH)) * 0.2 / WIDTH**0.5).astype(np.float32)
        value.const_value = ir.tensor(array, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.initializers[value.name or ""] = value
    return model


def main() -> None:
    """Prints the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=300)
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    model, runtime = network(given.layers), get("onnxruntime")
    draw = np.random.default_rng(1)
    samples = [Sample({"x": draw.standard_normal((ROWS, WIDTH)).astype(np.float32)}) for _ in range(given.samples)]
    ready = prepared(model, opset=13)
    with runtime.prepare(ready.model) as session:
        session.run(dict(samples[0].feeds))
        begin = time.perf_counter()
        for sample in samples:
            session.run(dict(sample.feeds))
        plain = time.perf_counter() - begin
    with Arithmetic(ready.model) as arithmetic:
        work = Work(ready, arithmetic, form(None), ranges.measured(ready.model, runtime, samples), runtime, samples)
        names = [layer.name for layer in Int8().layers(work)]
        begin = time.perf_counter()
        variant = Int8().variant(work, frozenset())
        made = time.perf_counter() - begin
        begin = time.perf_counter()
        found = damage(
            ready.model, variant, names, runtime, (dict(one.feeds) for one in itertools.islice(samples, _DAMAGED_ON))
        )
        took = time.perf_counter() - begin
    print(f"{len(names)} layers, {len(found)} measured; a plain evaluation of {given.samples} samples: {plain:.2f} s")
    print(f"quantised variant: {made:.2f} s = {made / plain:.1f} evaluations")
    print(f"damage of all layers: {took:.2f} s = {took / plain:.1f} evaluations (target: 20)")


if __name__ == "__main__":
    main()
