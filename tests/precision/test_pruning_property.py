"""prune: random graphs of the operators that channels are followed through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxsmith.precision.pruning.proof import proven
from tests.precision.pruning import cut, model

SIDE = 4


@dataclass
class Text:
    """A graph that grows: tensors [1, channels, 4, 4] by name."""

    weights: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    tensors: list[tuple[str, int]] = field(default_factory=lambda: [("x", 3)])

    def weight(self, *shape: int, kind: str = "float", name: str = "w") -> str:
        made = name if name.startswith("n_") else f"{name}_{len(self.weights)}"
        text = f"{kind}[{','.join(map(str, shape))}] {made}"
        if text not in self.weights:
            self.weights.append(text)
        return made

    def numbers(self, *numbers: int) -> str:
        name = "n_" + "_".join(str(number).replace("-", "m") for number in numbers)
        return self.weight(len(numbers), kind="int64", name=name)

    def add(self, channels: int, expression: str) -> None:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.tensors.append((name, channels))

    def conv(self, tensor: tuple[str, int], channels: int, groups: int = 1) -> None:
        weight = self.weight(channels, tensor[1] // groups, 3, 3)
        bias = self.weight(channels)
        self.add(channels, f"Conv<pads = [1,1,1,1], group = {groups}>({tensor[0]}, {weight}, {bias})")


def grow(text: Text, step: str, draw: Any) -> None:
    """Adds an operator that reads one or two of the last tensors."""
    tensor = draw(st.sampled_from(text.tensors[-3:]))
    name, channels = tensor
    alike = [other for other in text.tensors if other[1] == channels]
    if step == "conv":
        text.conv(tensor, draw(st.sampled_from([2, 4, 6])))
    elif step == "depthwise":
        text.conv(tensor, channels * draw(st.sampled_from([1, 2])), channels)
    elif step == "grouped" and channels % 2 == 0:
        text.conv(tensor, 4, 2)
    elif step == "transposed":
        weight = text.weight(channels, 4, 1, 1)
        text.add(4, f"ConvTranspose({name}, {weight})")
    elif step == "norm":
        four = [text.weight(channels, name=one) for one in ("s", "b", "mean", "var")]
        text.add(channels, f"BatchNormalization({name}, {', '.join(four)})")
    elif step == "residual":
        other = draw(st.sampled_from(alike))
        text.add(channels, f"{draw(st.sampled_from(['Add', 'Mul', 'Max']))}({name}, {other[0]})")
    elif step == "concat":
        other = draw(st.sampled_from(text.tensors))
        text.add(channels + other[1], f"Concat<axis = 1>({name}, {other[0]})")
    elif step == "slice" and channels > 2:
        begin, one, end = text.numbers(1), text.numbers(1), text.numbers(channels)
        text.add(channels - 1, f"Slice({name}, {begin}, {end}, {one})")
    elif step == "shuffle" and channels % 2 == 0:
        apart, back = text.numbers(1, 2, channels // 2, SIDE, SIDE), text.numbers(1, channels, SIDE, SIDE)
        text.lines.append(f"a{len(text.lines)} = Reshape({name}, {apart})")
        text.lines.append(f"b{len(text.lines)} = Transpose<perm = [0,2,1,3,4]>(a{len(text.lines) - 1})")
        text.add(channels, f"Reshape(b{len(text.lines) - 1}, {back})")
    elif step == "unary":
        text.add(channels, f"{draw(st.sampled_from(['Relu', 'Sigmoid', 'Exp', 'Neg']))}({name})".replace("Exp", "Tanh"))
    elif step == "pool":
        text.lines.append(f"p{len(text.lines)} = GlobalAveragePool({name})")
        text.add(channels, f"Mul({name}, p{len(text.lines) - 1})")


STEPS = (
    "conv", "conv", "conv", "depthwise", "grouped", "transposed", "norm", "residual", "concat", "slice", "shuffle",
    "unary", "pool",
)  # fmt: skip


@st.composite
def graphs(draw: Any) -> str:
    """Text of a graph: a convolution, some steps, then a layer that reads all channels and places."""
    text = Text()
    text.conv(("x", 3), 4)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=9)):
        grow(text, step, draw)
    name, channels = text.tensors[-1]
    weight = text.weight(channels * SIDE * SIDE, 3)
    text.lines += [f"flat = Flatten({name})", f"y = MatMul(flat, {weight})"]
    return (
        f"g (float[1,3,{SIDE},{SIDE}] x, {', '.join(text.weights)}) => (float[1,3] y) {{ " + " ".join(text.lines) + " }"
    )


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(graphs(), st.sampled_from([0.3, 0.5, 0.9]))
def test_a_pruned_graph_is_the_graph_without_the_channels(text: str, share: float) -> None:
    work, made, kept, channels = cut(model(text), share)
    compared = proven(work, made, kept, channels, None)
    assert not compared.differs, (text, compared.outputs)
    assert all(len(indices) for indices in kept.values())
