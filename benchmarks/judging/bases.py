"""The models that are judged: those of packages and exported networks, in float32, float16, dynamic and static int8.

    python benchmarks/judging/bases.py FOLDER [--only TEXT …]

Writes FOLDER/<form>/NAME.onnx and FOLDER/examples/NAME.npz, a feed that ONNX Runtime takes. What is there is not made
again; what cannot be made, or takes too long to run, is in FOLDER/bases.jsonl with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent.parent))

from judging.running import Arrays, Runner, feeds
from judging.visible import example_runs
from judging.worker import Worker

FORMS = ("float32", "float16", "dynamic", "static")
LARGEST = 12_000_000
"""Bytes of a file that is still judged."""
TIMEOUT = 200.0
SLOWEST = 0.5
"""Seconds that one run may take."""
QUANTIZED = {
    "dynamic": ("MatMulInteger", "ConvInteger", "DynamicQuantizeLinear", "DynamicQuantizeLSTM"),
    "static": ("QuantizeLinear",),
}


@dataclass(frozen=True)
class Base:
    """A model in one form, and a feed that it takes."""

    name: str
    form: str
    path: Path
    example_path: Path

    @property
    def title(self) -> str:
        """Name and form."""
        return f"{self.name}/{self.form}"

    def model(self) -> onnx.ModelProto:
        """The model, read."""
        return onnx.load(self.path)

    def example(self) -> Arrays:
        """The feed, floats in the dtypes that this form takes."""
        wanted = {port.name: port.type.tensor_type.elem_type for port in self.model().graph.input}
        held = np.load(self.example_path)
        return {
            name: held[name].astype(np.float16)
            if wanted.get(name) == onnx.TensorProto.FLOAT16 and held[name].dtype == np.float32
            else held[name]
            for name in held
        }


def bases(folder: Path) -> list[Base]:
    """What was made, in a fixed order."""
    return [
        Base(path.stem, form, path, folder / "examples" / f"{path.stem}.npz")
        for form in FORMS
        for path in sorted((folder / form).glob("*.onnx"))
    ]


SIZES: tuple[tuple[int, ...], ...] = (
    (1, 4000), (1, 3, 64, 64), (1, 576), (2, 16), (1, 1600, 1, 1), (1, 16000, 1, 1), (1, 3, 160, 160), (1, 9, 26, 26),
    (1, 1, 1, 1),
)  # fmt: skip
"""Sizes for dynamic axes by place, tried one after the other; 64 for the places behind."""


def examples(model: onnx.ModelProto) -> Iterator[Arrays]:
    """Feeds to try: sizes for every input, or for the first with 1 for the others; large integers, then small."""
    held = {tensor.name for tensor in model.graph.initializer}
    ports = [port for port in model.graph.input if port.name not in held]
    rng = np.random.default_rng(0)
    for sizes, top, others in product(SIZES, (100, 2, 1), (True, False)):
        feed = {}
        for port in ports:
            kind = port.type.tensor_type
            mine = sizes if others or port is ports[0] else (1,)
            shape = [_size(d, place, mine) for place, d in enumerate(kind.shape.dim)]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feed[port.name] = _values(port.name, shape, dtype, top, rng)
        yield feed


def _size(dim: Any, place: int, sizes: tuple[int, ...]) -> int:
    return (
        int(dim.dim_value) if dim.dim_value > 0 else sizes[place] if place < len(sizes) else 64 if len(sizes) > 1 else 1
    )


def _values(name: str, shape: list[int], dtype: Any, top: int, rng: np.random.Generator) -> Any:
    if name.lower() in ("sr", "sample_rate"):
        return np.full(shape, 16000, dtype)
    if "len" in name.lower() and dtype.kind in "iu":
        return np.full(shape, 3000 if top > 2 else top, dtype)
    if "mask" in name.lower() or dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return rng.integers(0, top, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype) if dtype.kind == "f" else np.full(shape, "some words", dtype)


def first_taken(model: onnx.ModelProto) -> Arrays | None:
    """The first feed that the model runs on, with an output that another feed changes."""
    runner = Runner(model)
    for feed in examples(model):
        try:
            one, other = (runner.run(one) for one in list(feeds(feed, 2, 0)))
        except Exception:  # noqa: BLE001 — the next sizes are tried
            continue
        if any(one[name].size and not np.array_equal(one[name], other[name], equal_nan=True) for name in one):
            return feed
    return None


def float16(model: onnx.ModelProto, target: Path, example: Mapping[str, Any], keep: bool) -> None:
    """By onnxruntime's converter, which leaves Casts at the end that belong further up."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    made = convert_float_to_float16(model, keep_io_types=keep)
    ordered = sorted_nodes(made.graph)
    del made.graph.node[:]
    made.graph.node.extend(ordered)
    onnx.save(made, target)


def sorted_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes, each behind those that make what it or its subgraphs read."""
    made = {name for node in graph.node for name in node.output if name}
    waiting, ordered, known = list(graph.node), [], set[str]()
    while waiting:
        ready = [node for node in waiting if not (_read(node) & made) - known]
        if not ready:
            raise ValueError("a cycle")
        ordered += ready
        known |= {name for node in ready for name in node.output}
        done = {id(node) for node in ready}
        waiting = [node for node in waiting if id(node) not in done]
    return ordered


def _read(node: onnx.NodeProto) -> set[str]:
    found = set(node.input)
    for one in node.attribute:
        for inner in one.g.node if one.type == onnx.AttributeProto.GRAPH else ():
            found |= _read(inner)
    return found


def dynamic(source: Path, target: Path) -> None:
    """By onnxruntime's `quantize_dynamic`."""
    from onnxruntime.quantization import quantize_dynamic

    model = onnx.load(source)
    constants = [n for n in model.graph.node if n.op_type == "Constant" and n.attribute[0].name == "value"]
    for node in constants:  # it looks for weights among the initializers
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(node.attribute[0].t), node.output[0])
        )
        model.graph.node.remove(node)
    del model.graph.value_info[:]  # it gives transposed weights their old names
    quantize_dynamic(model, target)


def static(source: Path, target: Path, example: Mapping[str, Any]) -> None:
    """By onnxruntime's `quantize_static`, calibrated on feeds like the example."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter(list(feeds(example, 3, 0)))

        def get_next(self) -> Any:
            return next(self.left, None)

    quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ)


def make(folder: Path, name: str, source: Path | None, form: str) -> str:
    """Writes one form of a model, of a network where it has no file; gives why it could not, or nothing."""
    if form != "float32":
        return convert(folder, name, folder / "float32" / f"{name}.onnx", form)
    if source is not None:
        return take(folder, name, source, None)
    made = exported(folder, name)
    return made if isinstance(made, str) else take(folder, name, *made)


def convert(folder: Path, name: str, source: Path, form: str) -> str:
    """Writes another form of a float32 model; gives why it could not, or nothing."""
    target = folder / form / f"{name}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    example = dict(np.load(folder / "examples" / f"{name}.npz"))
    try:
        if form == "float16":
            float16(onnx.load(source), target, example, keep=len(name) % 2 == 0)
        elif form == "dynamic":
            dynamic(source, target)
        else:
            static(source, target, example)
        base = Base(name, form, target, folder / "examples" / f"{name}.npz")
        if form in QUANTIZED and not any(node.op_type in QUANTIZED[form] for node in base.model().graph.node):
            raise ValueError("nothing was quantized")
        onnx.checker.check_model(str(target))
        seconds = example_runs(base.model(), base.example())
        if seconds > SLOWEST:
            raise ValueError(f"takes {seconds:.1f} s")
    except Exception as error:  # noqa: BLE001 — whatever stops a conversion is listed, and the others go on
        target.unlink(missing_ok=True)
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def take(folder: Path, name: str, source: Path, example: Mapping[str, Any] | None) -> str:
    """Copies a float32 model with an example; gives why it could not, or nothing."""
    target = folder / "float32" / f"{name}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    (folder / "examples").mkdir(parents=True, exist_ok=True)
    try:
        model = onnx.load(source)
        onnx.checker.check_model(model)
        example = example or first_taken(model)
        if example is None:
            return "no feed was found"
        seconds = example_runs(model, example)
        if seconds > SLOWEST:
            return f"takes {seconds:.1f} s"
        np.savez(folder / "examples" / f"{name}.npz", **example)
        onnx.save(model, target)
    except Exception as error:  # noqa: BLE001 — as above
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def shipped(folder: Path) -> Iterator[tuple[str, Path]]:
    """The models of installed packages that are small enough."""
    from models.shipped import link

    link(folder.parent)
    for path in sorted((folder.parent / "real").glob("*.onnx")):
        if path.stat().st_size <= LARGEST:
            yield path.stem, path


def exported(folder: Path, name: str) -> tuple[Path, Arrays] | str:
    """A network of `models/architectures.py`, by one of torch's exporters, sizes left open; or why it could not."""
    from models.architectures import ARCHITECTURES, build
    from models.exporting import export

    way = ("default", "ts")[sorted(ARCHITECTURES).index(name) % 2]
    path = folder / "exported" / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        said = export(name, way, True, path)
        said = said and export(name, "ts" if way == "default" else "default", True, path)
        if said:
            return said
    given = [value.numpy() for value in build(name).inputs.values()]
    ports = [port.name for port in onnx.load(path).graph.input]
    return path, dict(zip(ports, given, strict=True))


def main() -> None:
    """Makes what is not there, and says what could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    log = given.folder / "bases.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    known = {tuple(json.loads(line)[:2]) for line in log.read_text().splitlines()} if log.exists() else set()
    from models.architectures import ARCHITECTURES

    sources = {**dict(shipped(given.folder)), **dict.fromkeys(ARCHITECTURES)}
    with Worker() as worker:
        for name, source in sources.items():
            if given.only and not any(text in name for text in given.only):
                continue
            for form in FORMS:
                if (name, form) in known or (
                    form != "float32" and not (given.folder / "float32" / f"{name}.onnx").exists()
                ):
                    continue
                said, error = worker.call("judging.bases:make", given.folder, name, source, form, timeout=TIMEOUT)
                if error:  # a converter that took its process with it may have left a file
                    (given.folder / form / f"{name}.onnx").unlink(missing_ok=True)
                with log.open("a") as file:
                    file.write(json.dumps([name, form, error or said]) + "\n")
                print(f"{name}/{form}: {error or said or 'made'}", flush=True)


if __name__ == "__main__":
    main()
