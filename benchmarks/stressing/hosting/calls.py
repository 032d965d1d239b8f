"""Calls of the public functions of onnxsmith, in a fixed order: `at(n)` is call number n.

Each round calls every function once, on models of its own: their names and weights differ from those of the round
before, so that a cache which keeps one entry a model grows. Some calls are refused, others raise in code of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROUNDS = 10
"""The models that `write_models` makes; later rounds use them again."""
NOT_CALLED = {
    "OnnxsmithError": "a class",
    "Problem": "a class",
    "Report": "a class",
    "Result": "a class",
    "Save": "a class",
    "Verdict": "a class",
    "Verify": "a class",
    "__version__": "a text",
    "bench": "measures for seconds, in processes of its own",
    "bundle": "makes an environment for Python, which takes minutes",
    "onnx_op": "is called in a translation",
    "register": "adds to a table of the process, as its user asks",
    "rewrite": "adds to a table of the process, as its user asks",
}
"""The public names that no call uses, and why."""


def write_models(folder: Path) -> None:
    """Writes the models of all rounds: a small network of convolutions and a matrix product."""
    for number in range(ROUNDS):
        onnx.save(_network(number), folder / f"net{number}.onnx")
    (folder / "broken.onnx").write_bytes(b"\x08\x0a" + b"\xff" * 200)


def _network(number: int) -> onnx.ModelProto:
    draw, of = np.random.default_rng(number), f"m{number}_"
    shapes = {"k1": (32, 3, 3, 3), "k2": (32, 32, 3, 3), "w": (32, 10), "c": (10,)}
    shapes |= dict.fromkeys(("s", "o", "mean"), (32,))
    weights = [numpy_helper.from_array(draw.normal(0, 0.3, shape).astype("f"), of + n) for n, shape in shapes.items()]
    weights.append(numpy_helper.from_array(np.ones(32, "f"), f"{of}var"))
    lines = [
        ("Conv", "x k1", "a", {"pads": [1] * 4}),
        ("BatchNormalization", "a s o mean var", "b", {}),
        ("Relu", "b", "r", {}),
        ("Identity", "r", "i", {}),
        ("Conv", "i k2", "d", {"pads": [1] * 4}),
        ("Add", "d r", "e", {}),
        ("GlobalAveragePool", "e", "g", {}),
        ("Flatten", "g", "f", {}),
        ("Gemm", "f w c", "h", {}),
        ("Softmax", "h", "y", {}),
    ]
    nodes = [
        helper.make_node(kind, [of + one for one in read.split()], [of + made], name=f"{of}{kind}_{made}", **attributes)
        for kind, read, made, attributes in lines
    ]
    x = helper.make_tensor_value_info(f"{of}x", TensorProto.FLOAT, [f"{of}batch", 3, 8, 8])
    y = helper.make_tensor_value_info(f"{of}y", TensorProto.FLOAT, [f"{of}batch", 10])
    graph = helper.make_graph(nodes, f"{of}net", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class Files:
    """The models of a round, and the folder into which its calls write."""

    def __init__(self, models: Path, folder: Path, round_: int) -> None:
        self.number = round_ % ROUNDS
        self.model, self.broken = models / f"net{self.number}.onnx", models / "broken.onnx"
        self.folder = folder

    def out(self, name: str) -> Path:
        """Returns a path to write to."""
        return self.folder / name

    def array(self, batch: int = 2) -> dict[str, Any]:
        """Returns inputs of the model."""
        return {f"m{self.number}_x": np.random.default_rng(1).normal(size=(batch, 3, 8, 8)).astype("f")}


def _module(number: int) -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):  # torch.manual_seed takes a lock, in which another thread may fork
        torch.default_generator.manual_seed(number)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()


def _load(files: Files) -> None:
    import onnxsmith

    onnxsmith.save(onnxsmith.load(files.model), files.out("saved.onnx"))


def _inspect(files: Files) -> None:
    import onnxsmith

    onnxsmith.inspect(files.model, nodes=True, tensors=True, costs=True)


def _simplify(files: Files) -> None:
    import onnxsmith

    onnxsmith.simplify(files.model, files.out("simple.onnx"))


def _compare(files: Files) -> None:
    import onnxsmith

    onnxsmith.compare(files.model, files.model, inputs=files.array(), generate=False)


def _compare_with_torch(files: Files) -> None:
    import torch

    import onnxsmith

    net, given = _module(files.number), torch.ones(2, 4)
    onnxsmith.compare((net, (given,)), (net, (given,)))


def _diff(files: Files) -> None:
    import onnxsmith

    other = files.model.with_name(f"net{(files.number + 1) % ROUNDS}.onnx")
    onnxsmith.diff(files.model, other)


def _edit(files: Files) -> None:
    import onnxsmith

    with onnxsmith.edit(files.model, files.out("edited.onnx")) as editing:
        editing.rename(f"m{files.number}_x", "image")


def _view(files: Files) -> None:
    import onnxsmith

    onnxsmith.view(files.model, output=files.out("page.html"))


def _check(files: Files) -> None:
    import onnxsmith

    onnxsmith.check(files.model, ["onnxruntime"])


def _run(files: Files) -> None:
    import onnxsmith

    onnxsmith.run(files.model, files.array())
    onnxsmith.run(files.model, files.array(), runtime="reference")


def _dump(files: Files) -> None:
    import onnxsmith

    onnxsmith.dump(files.model, files.out("tensors.npz"), inputs=files.array())


def _explain(files: Files) -> None:
    import onnxsmith

    onnxsmith.explain(f"Node (m{files.number}_Conv_a) Op (Conv) [ShapeInferenceError] wrong", files.model)


def _export(files: Files) -> None:
    import torch

    import onnxsmith

    onnxsmith.export(
        _module(files.number), (torch.ones(2, 4),), output=files.out("net.onnx"), dynamic={"input": {0: "batch"}}
    )


def _diagnose(files: Files) -> None:
    import torch

    import onnxsmith

    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum() > 0 else x - 1

    onnxsmith.diagnose(Branches(), (torch.ones(3),))


def _quantize(files: Files) -> None:
    import onnxsmith

    onnxsmith.quantize(files.model, files.out("small.onnx"), to="int8", measure_time=False, write_unsure=True)


def _prune(files: Files) -> None:
    import onnxsmith

    onnxsmith.prune(files.model, files.out("pruned.onnx"), share="50%", measure_time=False, write_unsure=True)


def _bisect(files: Files) -> None:
    import onnxsmith

    onnxsmith.bisect(files.model, files.out("half.onnx"))


def _split_and_merge(files: Files) -> None:
    import onnxsmith

    of = f"m{files.number}_"
    onnxsmith.split(files.model, files.out("parts"), at=[f"{of}i"])
    first, second = sorted(files.out("parts").glob("*.onnx"))
    onnxsmith.merge(first, second, files.out("merged.onnx"))


def _build(files: Files) -> None:
    import onnxsmith

    with onnxsmith.build(files.out("built.onnx")) as g:
        x = g.input(f"x{files.number}", "float32", [f"n{files.number}", 4])
        g.output("y", g.Relu(x + np.full(4, files.number, "f")))


def _reduce(files: Files) -> None:
    import onnxsmith

    def fails(model: Path, _: Any) -> bool:
        return b"Softmax" in model.read_bytes()

    onnxsmith.reduce(files.model, check=fails, inputs=files.array())


def _doctor(_: Files) -> None:
    import onnxsmith

    onnxsmith.doctor()


def _shrink(files: Files) -> None:
    import onnxsmith

    onnxsmith.shrink(_module(files.number), {"0.weight": {"0": [0, 1, 2, 3]}})


def _verify_record(files: Files) -> None:
    import onnxsmith

    onnxsmith.verify_record(files.broken)


def _refused_file(files: Files) -> None:
    import onnxsmith

    onnxsmith.simplify(files.broken, files.out("never.onnx"))


def _refused_output(files: Files) -> None:
    import onnxsmith

    onnxsmith.simplify(files.model, files.folder / "absent" / "never.onnx")


def _raising_module(files: Files) -> None:
    import torch

    import onnxsmith

    class Raises(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("said by the module")

    onnxsmith.export(Raises(), (torch.ones(3),), output=files.out("never.onnx"))


def _raising_edit(files: Files) -> None:
    import onnxsmith

    with onnxsmith.edit(files.model, files.out("never.onnx")):
        raise ValueError("said by the user's code")


REFUSED = (_verify_record, _refused_file, _refused_output, _raising_module, _raising_edit)
"""The calls that have to raise."""
ROUND: tuple[Callable[[Files], None], ...] = (
    _load,
    _inspect,
    _simplify,
    _refused_file,
    _compare,
    _diff,
    _edit,
    _view,
    _export,
    _raising_module,
    _run,
    _dump,
    _explain,
    _build,
    _refused_output,
    _split_and_merge,
    _quantize,
    _raising_edit,
    _compare_with_torch,
    _prune,
)
"""The calls of each round."""
DEAR: tuple[Callable[[Files], None], ...] = (_check, _diagnose, _bisect, _reduce, _doctor, _shrink, _verify_record)
"""The calls that only some rounds make, in place of their last one."""
WARM = len(ROUND) + len(DEAR)
"""The calls of the warm-up: each of them once."""


def at(number: int) -> tuple[str, Callable[[Files], None], int]:
    """Returns the name of call `number`, the call, and its round. The warm-up is round 0."""
    if number < WARM:
        round_, call = 0, (*ROUND, *DEAR)[number]
    else:
        round_, place = divmod(number - WARM + len(ROUND), len(ROUND))
        call = ROUND[place]
        if place == len(ROUND) - 1 and round_ % 2:
            call = DEAR[round_ // 2 % len(DEAR)]
    return call.__name__.removeprefix("_"), call, round_


def called() -> set[str]:
    """Returns the public functions that the calls use."""
    import inspect
    import re

    return {name for call in (*ROUND, *DEAR) for name in re.findall(r"onnxsmith\.(\w+)\(", inspect.getsource(call))}
