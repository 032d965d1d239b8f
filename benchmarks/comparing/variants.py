"""Faults in files as they are, renamed, reordered, and simplified by other tools: `compare` by layer has to find them.

    python benchmarks/comparing/variants.py [--only TEXT …] [--variants NAME …] [--seed 0] [--jsonl FILE]

Each network is exported by both of torch's exporters. The faults are those of `judging/planting.py`; one that changes
no output is left out. The culprit is what the fault changed: a node, or the readers of a weight. If a tool merges it
with others, the node that computes the next tensor that the tool kept is right as well. Pairs without a fault have to
stay without a culprit. The last line has what a comparison costs beside two plain runs: the median of (seconds - 1)
over the seconds of a session and a run of each side here; 1 second is what the child process and its imports take.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
from judging.graphs import Open
from judging.planting import PLANTERS, NoPlace

import onnxsmith
from comparing.networks import NETWORKS
from onnxsmith.base.report.parts.layers import Layers

SEEN = 1e-4
"""The change of an output, relative to its largest element, from which on a fault counts: far above rounding."""
OWN = 1.0
"""Seconds of a comparison that are not compared with plain runs: the child process, and the imports in it."""
Variant = Callable[[onnx.ModelProto, np.random.Generator], tuple[onnx.ModelProto, dict[str, str]]]
"""Makes another form of a model; the second is the old name of each node that was renamed."""


def as_it_is(model: onnx.ModelProto, _: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    return model, {}


def renamed(model: onnx.ModelProto, rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    """New names for all nodes and tensors but the ports."""
    copy = _copied(model)
    ports = {one.name for one in (*copy.graph.input, *copy.graph.output)}
    inner = [one for node in copy.graph.node for one in node.output if one] + [t.name for t in copy.graph.initializer]
    numbers = rng.permutation(len(inner))
    tensors = {old: f"t{number}" for old, number in zip(inner, numbers, strict=True) if old not in ports}
    for node in copy.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _renamed_inside(attribute.g, tensors)
    back = {}
    for number, (node, place) in enumerate(zip(copy.graph.node, rng.permutation(len(copy.graph.node)), strict=True)):
        back[f"n{place}_{number}"] = node.name
        node.name = f"n{place}_{number}"
        node.input[:] = [tensors.get(one, one) for one in node.input]
        node.output[:] = [tensors.get(one, one) for one in node.output]
        del node.metadata_props[:]
        node.doc_string = ""
    for tensor in copy.graph.initializer:
        tensor.name = tensors.get(tensor.name, tensor.name)
    del copy.graph.value_info[:]
    return copy, back


def _renamed_inside(graph: onnx.GraphProto, tensors: dict[str, str]) -> None:
    own = {one for node in graph.node for one in node.output} | {one.name for one in graph.input}
    for node in graph.node:
        node.input[:] = [one if one in own else tensors.get(one, one) for one in node.input]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _renamed_inside(attribute.g, tensors)
    for value in graph.output:
        value.name = value.name if value.name in own else tensors.get(value.name, value.name)


def reordered(model: onnx.ModelProto, rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    """New names, and the nodes in another order that is right, too."""
    copy, back = renamed(model, rng)
    known = {""} | {one.name for one in (*copy.graph.input, *copy.graph.initializer)}
    made = {name for node in copy.graph.node for name in node.output}
    waiting = list(copy.graph.node)
    ordered = []
    while waiting:
        ready = [n for n, node in enumerate(waiting) if all(one in known or one not in made for one in _reads(node))]
        node = waiting.pop(int(rng.choice(ready)))
        ordered.append(node)
        known.update(node.output)
    nodes = [_copied(node) for node in ordered]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy, back


def _reads(node: onnx.NodeProto) -> list[str]:
    inner = [one for attribute in node.attribute for below in attribute.g.node for one in _reads(below)]
    return [*node.input, *inner]


def by_onnxsim(model: onnx.ModelProto, _: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    import onnxsim

    return onnxsim.simplify(_copied(model))[0], {}


def by_onnxslim(model: onnx.ModelProto, _: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    import onnxslim

    return onnxslim.slim(_copied(model)), {}


def by_onnxruntime(model: onnx.ModelProto, _: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    path = Path("/tmp") / f"variant{id(model)}.onnx"
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    made = onnx.load(path)
    path.unlink()
    return made, {}


def all_together(model: onnx.ModelProto, rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Simplified by one of the tools, renamed and reordered."""
    tool = (by_onnxsim, by_onnxslim, by_onnxruntime)[int(rng.integers(0, 3))]
    made, _ = tool(model, rng)
    for number, node in enumerate(made.graph.node):
        node.name = node.name or f"unnamed{number}"
    return reordered(made, rng)


VARIANTS: dict[str, Variant] = {
    "as it is": as_it_is,
    "renamed": renamed,
    "reordered": reordered,
    "onnxsim": by_onnxsim,
    "onnxslim": by_onnxslim,
    "onnxruntime": by_onnxruntime,
    "all together": all_together,
}


@dataclass(frozen=True)
class Case:
    """A right file, and one with a fault, or without one if `culprits` is empty. Those are names of nodes of the
    candidate, `named` maps its names to those before renaming."""

    name: str
    variant: str
    what: str
    reference: onnx.ModelProto
    candidate: onnx.ModelProto
    culprits: frozenset[str]
    back: dict[str, str]
    feed: dict[str, Any]


def exported() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    """The networks as both exporters write them, each with an input."""
    for name, build in NETWORKS.items():
        module, args = build()
        for dynamo in (True, False):
            buffer = io.BytesIO()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                how = {} if dynamo else {"opset_version": 17}
                program = torch.onnx.export(
                    module, args, None if dynamo else buffer, dynamo=dynamo, verbose=False, **how
                )
            model = program.model_proto if dynamo else onnx.load_from_string(buffer.getvalue())
            for number, node in enumerate(model.graph.node):
                node.name = node.name or f"{node.op_type}_{number}"
            names = [one.name for one in model.graph.input]
            feed = {name: tensor.numpy(force=True) for name, tensor in zip(names, args, strict=True)}
            yield f"{name}, {'dynamo' if dynamo else 'script'}", model, feed


def cases(seed: int, variants: list[str]) -> Iterator[Case]:
    """For each network and fault the variants in turn; and each variant without a fault."""
    rng = np.random.default_rng(seed)
    turn = 0
    for name, model, feed in exported():
        right = _run(model, feed)
        for variant in variants:
            made = _made(VARIANTS[variant], model, rng)
            if made is not None:
                yield Case(f"{name}, no fault, {variant}", variant, "", model, made[0], frozenset(), made[1], feed)
        for fault, plant in PLANTERS.items():
            wrong = _copied(model)
            try:
                what = plant(Open(wrong), rng)
                outputs = _run(wrong, feed)
            except NoPlace:
                continue
            except Exception:  # noqa: BLE001 — the fault left a file that does not run
                continue
            if not _differ(right, outputs):
                continue
            variant = variants[turn % len(variants)]
            turn += 1
            made = _made(VARIANTS[variant], wrong, rng)
            if made is None:
                continue
            candidate, back = made
            culprits = _kept(wrong, _changed(model, wrong), candidate, back)
            yield Case(f"{name}, {fault}, {variant}", variant, what, model, candidate, culprits, back, feed)


def _made(
    variant: Variant, model: onnx.ModelProto, rng: np.random.Generator
) -> tuple[onnx.ModelProto, dict[str, str]] | None:
    try:
        candidate, back = variant(model, rng)
    except Exception as error:  # noqa: BLE001 — a peer that fails on this file
        print(f"  no variant: {type(error).__name__}", flush=True)
        return None
    for number, node in enumerate(candidate.graph.node):
        node.name = node.name or f"unnamed{number}"
    return candidate, back


def _changed(right: onnx.ModelProto, wrong: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes of the wrong file that the fault changed or added, or that read what it changed or removed."""
    before = {node.name: node for node in right.graph.node}
    weights = {tensor.name: tensor for tensor in right.graph.initializer}
    moved = {tensor.name for tensor in wrong.graph.initializer if weights.get(tensor.name) != tensor}
    constants = [node for node in wrong.graph.node if node.op_type == "Constant" and node != before.get(node.name)]
    moved |= {name for node in constants for name in node.output}
    own = [node for node in wrong.graph.node if node.op_type != "Constant"]
    added = [node for node in own if node.name not in before]
    made = {name for node in added for name in node.output}
    found = [
        node
        for node in own
        if node.name in before and (node != before[node.name] or any(name in moved for name in node.input))
    ]
    if added:  # what reads an added node was only wired to it
        kept = [n for n in found if not any(name in made for name in n.input)]
        return [*added, *(kept if len(added) == 1 and not made else [])]
    return found


def _kept(
    wrong: onnx.ModelProto, changed: list[onnx.NodeProto], candidate: onnx.ModelProto, back: dict[str, str]
) -> frozenset[str]:
    """The culprits in a variant, by name."""
    forward = {old: new for new, old in back.items()}
    names = {node.name for node in candidate.graph.node}
    here = {forward.get(node.name, node.name) for node in changed} & names
    if here and (back or all(forward.get(node.name, node.name) in names for node in changed)):
        return frozenset(here)
    makers = {name: node.name for node in candidate.graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in wrong.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    before = {node.name for node in wrong.graph.node}
    nodes = {node.name: node for node in candidate.graph.node}
    found, queue, seen = set(here), list(changed), set()
    while queue:
        node = queue.pop()
        for name in node.output:
            if name in makers:
                found |= _merged(nodes, makers, makers[name], before)
            else:
                queue += [one for one in readers.get(name, ()) if one.name not in seen]
                seen.update(one.name for one in readers.get(name, ()))
    return frozenset(found)


def _merged(nodes: dict[str, onnx.NodeProto], makers: dict[str, str], name: str, before: set[str]) -> set[str]:
    """A node, and the nodes before it that the tool made."""
    found, queue = {name}, [name]
    while queue:
        for read in nodes[queue.pop()].input:
            made = makers.get(read)
            if made is not None and made not in before and made not in found:
                found.add(made)
                queue.append(made)
    return found


def _run(model: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feed))


def _plain(case: Case) -> float:
    """Seconds of a session and a run of each side, without onnxsmith."""
    began = time.monotonic()
    for model in (case.reference, case.candidate):
        _run(model, case.feed)
    return time.monotonic() - began


def _differ(right: list[Any], wrong: list[Any]) -> bool:
    for a, b in zip(right, wrong, strict=True):
        if a.shape != b.shape or not np.isfinite(b).all():
            return True
        if a.size and np.abs(a - b).max() > SEEN * max(float(np.abs(a).max()), 1e-9):
            return True
    return False


def _copied(proto: Any) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


def judged(case: Case) -> tuple[str, str]:
    """How the comparison did, and what it named."""
    try:
        result = onnxsmith.compare(case.reference, case.candidate, inputs=case.feed, per_layer=True)
        part = result.report.part(Layers)
    except onnxsmith.OnnxsmithError as error:
        return "refused", error.problem.id
    except Exception as error:  # noqa: BLE001 — it must not
        return "died", f"{type(error).__name__}: {error}"[:200]
    if not part.culprits:
        return ("missed", result.report.verdict.value) if case.culprits else ("silent", "")
    steps = part.layer(part.culprits[0]).steps
    named = f"{part.layer(part.culprits[0]).op} {', '.join(steps[:4])}"
    if not case.culprits:
        return "named", named
    if steps and steps[0] in case.culprits:
        return "first", named
    return ("among" if case.culprits & set(steps) and len(steps) <= 4 else "other"), named


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jsonl", type=Path)
    asked = parser.parse_args()
    counts: dict[str, Counter[str]] = {variant: Counter() for variant in asked.variants}
    equal: Counter[str] = Counter()
    times, costs = [], []
    for case in cases(asked.seed, asked.variants):
        if not all(text in case.name for text in asked.only):
            continue
        began = time.monotonic()
        status, named = judged(case)
        times.append(time.monotonic() - began)
        costs.append((times[-1] - OWN) / _plain(case))
        (counts[case.variant] if case.culprits else equal)[status] += 1
        if status not in ("first", "silent"):
            where = f"{case.what}; {sorted(case.culprits)[:4]}"
            print(f"{status:8} {times[-1]:5.1f} s  {case.name}: {where}; named {named}", flush=True)
        if asked.jsonl:
            row = {"case": case.name, "status": status, "named": named, "seconds": times[-1], "what": case.what}
            with asked.jsonl.open("a") as file:
                file.write(json.dumps(row) + "\n")
    total: Counter[str] = sum(counts.values(), Counter())
    for variant, found in counts.items():
        print(f"{variant:14} first {found['first']} of {sum(found.values())}  {dict(found)}")
    share = total["first"] / max(sum(total.values()), 1)
    print(f"named first: {total['first']} of {sum(total.values())} ({share:.1%}); without a fault: {dict(equal)}")
    print(f"median {np.median(times):.1f} s, p90 {np.quantile(times, 0.9):.1f} s")
    print(f"(seconds - {OWN:.0f}) over two plain runs with their sessions: median {np.median(costs):.1f}")
    return 0 if share >= 0.97 and not equal["named"] else 1


if __name__ == "__main__":
    sys.exit(main())
