"""Opens a model of 10,000 nodes, removes one node, saves it: processor seconds, beside GraphSurgeon. Edits one node of
15,000 by the command, compared with the original: processor seconds of all processes, imports included. Extracts a
small part of a model of 3 GB: peak memory of the largest process, beside onnx.utils.extract_model.

Each run is a process of its own. `onnxsmith` checks the model (specification, strict shape inference) before it writes;
with verification it also compares it with the original. GraphSurgeon writes unchecked. Imports count apart."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NODES = 10_000
TARGET = 2.0
RUNS = 3

OURS = """
import time, sys
import onnxsmith
onnxsmith.edit
import onnxsmith.editor.patch
onnxsmith.editor.patch.kinds()
start = time.process_time()
with onnxsmith.edit(sys.argv[1], sys.argv[2], verify={verify}) as m:
    m.remove("node_5000")
print(time.process_time() - start)
"""
THEIRS = """
import time, sys
import onnx, onnx_graphsurgeon as gs
start = time.process_time()
graph = gs.import_onnx(onnx.load(sys.argv[1]))
node = next(node for node in graph.nodes if node.name == "node_5000")
reader = node.o()
reader.inputs = [node.inputs[0]]
node.outputs.clear()
graph.cleanup().toposort()
onnx.save(gs.export_onnx(graph), sys.argv[2])
print(time.process_time() - start)
"""


def made(path: Path) -> None:
    """Writes the model: a chain of unary operators with declared shapes."""
    from onnx import TensorProto, helper, save

    ops = ("Relu", "Neg", "Abs", "Tanh")
    nodes = [helper.make_node(ops[i % 4], [f"t{i}"], [f"t{i + 1}"], name=f"node_{i}") for i in range(NODES)]
    values = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, ["n", 4]) for i in range(NODES + 1)]
    graph = helper.make_graph(nodes, "chain", values[:1], values[-1:], value_info=values[1:-1])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def seconds(code: str, source: Path, target: Path) -> float:
    """The median of the processor seconds that a program prints."""
    runs = [
        float(subprocess.run([sys.executable, "-c", code, source, target], check=True, capture_output=True).stdout)
        for _ in range(RUNS)
    ]
    return statistics.median(runs)


LAYERS = 3_750
WHOLE = 4.0
PATCH = """[[step]]
do = "remove"
node = "same"
"""
GRAPHSURGEON = THEIRS.replace("node_5000", "same")


def layered(path: Path) -> None:
    """Writes a model of 15,000 nodes with weights: layers of MatMul, Add, Tanh and Add, and one Identity between."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    rng, nodes, weights = np.random.default_rng(0), [], []
    for at in range(LAYERS):
        weights.append(numpy_helper.from_array(rng.normal(0, 0.1, (16, 16)).astype(np.float32), f"w{at}"))
        nodes += [
            helper.make_node("MatMul", [f"x{at}", f"w{at}"], [f"m{at}"], name=f"matmul_{at}"),
            helper.make_node("Add", [f"m{at}", "bias"], [f"s{at}"], name=f"bias_{at}"),
            helper.make_node("Tanh", [f"s{at}"], [f"t{at}"], name=f"tanh_{at}"),
            helper.make_node("Add", [f"t{at}", f"x{at}"], [f"x{at + 1}"], name=f"sum_{at}"),
        ]
    middle = LAYERS // 2
    nodes[4 * middle + 2].input[0] = "i"
    nodes.insert(4 * middle + 2, helper.make_node("Identity", [f"s{middle}"], ["i"], name="same"))
    weights.append(numpy_helper.from_array(np.ones(16, np.float32), "bias"))
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for node in nodes for name in node.output
    ]
    first = helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["n", 16])
    graph = helper.make_graph(nodes, "layers", [first], values[-1:], weights, value_info=values[:-1])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def of_all_processes(command: list[str]) -> float:
    """The median of the processor seconds of a command and its child processes."""
    watched = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", watched, *command], check=True, capture_output=True).stdout)
        for _ in range(RUNS)
    ]
    return statistics.median(runs)


def one_node() -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, steps = folder / "layers.onnx", folder / "patch.toml"
        layered(source)
        steps.write_text(PATCH)
        edit = [sys.executable, "-m", "onnxsmith", "edit", str(source), str(steps), "-o", str(folder / "edited.onnx")]
        ours = of_all_processes(edit)
        plain = of_all_processes([*edit, "--no-verify"])
        try:
            theirs = of_all_processes([sys.executable, "-c", GRAPHSURGEON, str(source), str(folder / "other.onnx")])
        except subprocess.CalledProcessError:
            theirs = float("nan")
    nodes = 4 * LAYERS + 1
    print(f"{nodes:,} nodes, one edited, compared: {ours:.2f} s of all processes (target {WHOLE:.2f} s)")
    print(f"the same, not compared: {plain:.2f} s")
    print(f"GraphSurgeon, unchecked: {theirs:.2f} s; ratio {ours / theirs:.2f}")
    return ours <= WHOLE


LARGE = 3 * 2**30
MEMORY = 200
PART = """
import sys
import onnxsmith
with onnxsmith.edit(sys.argv[1], sys.argv[2]) as m:
    m.extract("m5", "r5")
"""
ONNX = """
import sys, onnx.utils
onnx.utils.extract_model(sys.argv[1], sys.argv[2], ["m5"], ["r5"])
"""


def large(folder: Path) -> Path:
    """Writes a model of 24 layers with 3 GB of weights, all zero, in a sparse file."""
    from onnx import TensorProto, helper, save

    weights, nodes, width = [], [], 2**13
    for at in range(24):
        tensor = TensorProto(name=f"w{at}", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        tensor.dims.extend([width, width // 2] if at % 2 == 0 else [width // 2, width])
        size = LARGE // 24
        for key, value in (("location", "weights.bin"), ("offset", at * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [f"r{at - 1}" if at else "x", f"w{at}"], [f"m{at}"]))
        nodes.append(helper.make_node("Relu", [f"m{at}"], [f"r{at}"]))
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(LARGE)
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "large", [shape("x", 1, ["n", width])], [shape("r23", 1, ["n", width])], weights,
        value_info=[shape(f"{kind}5", 1, ["n", width]) for kind in "mr"],
    )  # fmt: skip
    path = folder / "large.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def megabytes(code: str, source: Path, target: Path) -> float:
    """The peak resident memory of a program, or of the largest of its children."""
    watched = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", watched, sys.executable, "-c", code, source, target]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def memory() -> bool:
    with tempfile.TemporaryDirectory() as name:
        source = large(Path(name))
        ours = megabytes(PART, source, Path(name) / "part.onnx")
        theirs = megabytes(ONNX, source, Path(name) / "other.onnx")
    print(f"a part of 3 GB: extracted and compared in {ours:.0f} MB (target {MEMORY} MB)")
    print(f"onnx.utils.extract_model, not compared: {theirs:.0f} MB; ratio {ours / theirs:.2f}")
    return ours <= MEMORY


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "chain.onnx", Path(name) / "edited.onnx"
        made(source)
        ours = seconds(OURS.format(verify=False), source, target)
        whole = seconds(OURS.format(verify=True), source, target)
        try:
            theirs = seconds(THEIRS, source, target)
        except subprocess.CalledProcessError as error:
            print("GraphSurgeon did not run:", error.stderr.decode().strip().splitlines()[-1])
            theirs = float("nan")
    print(f"{NODES:,} nodes: open, remove one, check, save: {ours:.2f} s (target {TARGET:.2f} s)")
    print(f"the same, compared with the original: {whole:.2f} s in this process")
    print(f"GraphSurgeon, unchecked: {theirs:.2f} s; ratio {ours / theirs:.2f}")
    within = [ours <= TARGET, one_node(), memory()]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
