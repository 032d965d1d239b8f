"""Networks built by hand equal the same networks in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

import onnxsmith
from onnxsmith.graph.operators.tensor import Tensor


def weights(module: nn.Module) -> dict[str, Any]:
    """The arrays of a module. Running averages get values of their own, so that a mixed-up order shows."""
    for name, buffer in module.named_buffers():
        if "running" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def assert_equal(g: Any, module: nn.Module, *shapes: tuple[int, ...], tolerance: float = 1e-4) -> None:
    """The built model gives what the module gives, at several sizes."""
    module.eval()
    for shape in shapes:
        x = torch.randn(shape)
        (found,) = onnxsmith.run(g.model, {"x": x.numpy()}).outputs.values()
        with torch.no_grad():
            wanted = module(x).numpy()
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
        assert not np.allclose(found, wanted * 1.01, rtol=tolerance, atol=tolerance)


def conv(g: Any, x: Tensor, w: dict[str, Any], name: str, stride: int = 1) -> Tensor:
    kernel = w[f"{name}.weight"].shape[-1]
    made: Tensor = g.Conv(
        x, w[f"{name}.weight"], w.get(f"{name}.bias"), strides=[stride, stride], pads=[kernel // 2] * 4, name=name
    )
    return made


def norm(g: Any, x: Tensor, w: dict[str, Any], name: str) -> Tensor:
    parts = [w[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")]
    made: Tensor = g.BatchNormalization(x, *parts)
    return made


def test_mul_and_add() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 + 1

    with onnxsmith.build() as g:
        g.output("y", g.input("x", "float32", ["batch", 3]) * 2 + 1)
    assert_equal(g, Net(), (1, 3), (4, 3))


def test_conv_batchnorm_relu_pool_conv() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1)
    )
    w = weights(net)
    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["batch", 3, "h", "w"])
        y = g.GlobalAveragePool(g.Relu(norm(g, conv(g, x, w, "0"), w, "1")))
        g.output("y", conv(g, y, w, "4"))
    assert g.model.graph.outputs[0].shape == ["batch", 4, 1, 1]
    assert_equal(g, net, (1, 3, 8, 8), (2, 3, 9, 7))


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2015, table 1), with `width` channels in its first stage."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(width)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks = nn.ModuleList()
        for stage in range(4):
            self.blocks.append(Block(sizes[stage], sizes[stage + 1], 1 if stage == 0 else 2))
            self.blocks.append(Block(sizes[stage + 1], sizes[stage + 1], 1))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.norm(self.stem(x))), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


def test_resnet18() -> None:
    torch.manual_seed(0)
    net = ResNet18(8, 10)
    w = weights(net)
    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["batch", 3, "h", "w"])
        y = g.Relu(norm(g, conv(g, x, w, "stem", 2), w, "norm"))
        y = g.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for index in range(8):
            stride = 2 if index in (2, 4, 6) else 1
            block, short = f"blocks.{index}", y
            inner = g.Relu(norm(g, conv(g, y, w, f"{block}.conv1", stride), w, f"{block}.bn1"))
            inner = norm(g, conv(g, inner, w, f"{block}.conv2"), w, f"{block}.bn2")
            if f"{block}.shortcut.0.weight" in w:
                short = norm(g, conv(g, y, w, f"{block}.shortcut.0", stride), w, f"{block}.shortcut.1")
            y = g.Relu(inner + short)
        g.output("y", g.Gemm(g.Flatten(g.GlobalAveragePool(y)), w["fc.weight"], w["fc.bias"], transB=1))
    assert_equal(g, net, (1, 3, 64, 64), (2, 3, 50, 70))


def test_transformer_encoder_layer() -> None:
    torch.manual_seed(0)
    width, heads = 16, 4
    net = nn.TransformerEncoderLayer(width, heads, 32, activation="gelu", batch_first=True).eval()
    w = weights(net)

    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["batch", "length", width])

        def linear(y: Tensor, name: str) -> Tensor:
            made: Tensor = y @ w[f"{name}weight"].T + w[f"{name}bias"]
            return made

        def split_heads(y: Tensor) -> Tensor:
            made: Tensor = g.Transpose(g.Reshape(y, [0, 0, heads, width // heads]), perm=[0, 2, 1, 3])
            return made

        with g.scope("attention"):
            q, k, v = (split_heads(one) for one in g.Split(linear(x, "self_attn.in_proj_"), num_outputs=3, axis=-1))
            score = g.Softmax(q @ g.Transpose(k, perm=[0, 1, 3, 2]) / np.sqrt(width / heads), axis=-1)
            mixed = g.Reshape(g.Transpose(score @ v, perm=[0, 2, 1, 3]), [0, 0, width])
            y = x + linear(mixed, "self_attn.out_proj.")
        y = g.LayerNormalization(y, w["norm1.weight"], w["norm1.bias"])
        with g.scope("feed_forward"):
            inner = linear(y, "linear1.")
            y = y + linear(0.5 * inner * (1 + g.Erf(inner / np.sqrt(2))), "linear2.")
        g.output("y", g.LayerNormalization(y, w["norm2.weight"], w["norm2.bias"]))
    assert y.shape == ("batch", "length", width)
    assert_equal(g, net, (1, 5, width), (3, 7, width))


def test_the_transformer_that_only_a_runtime_would_refuse() -> None:
    """onnx.checker lets a scale of LayerNormalization pass whose size is another than the width."""
    import onnx
    import pytest
    from onnx import helper

    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [info("x", 1, ["n", 16])], [info("y", 1, ["n", 16])], [helper.make_tensor("s", 1, [8], [1.0] * 8)]
    )
    onnx.checker.check_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), full_check=True)
    g = onnxsmith.build()
    with pytest.raises(onnxsmith.OnnxsmithError) as refused:
        g.LayerNormalization(g.input("x", "float32", ["n", 16]), np.ones(8, np.float32))
    assert "Scale has the shape [8], not [16]" in refused.value.problem.what
