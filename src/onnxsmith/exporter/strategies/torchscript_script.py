"""torch.jit.script, then the older exporter of torch.onnx: branches and loops on the values of tensors stay."""

from __future__ import annotations

from onnxsmith.exporter.strategies.torchscript import TorchScript


class TorchScriptScript(TorchScript):
    """The module is compiled from its source, so that an `if` or a loop on the value of a tensor becomes If or Loop.

    TorchScript takes a part of Python only, and fewer modules than a trace; what it gives counts when it is verified.
    """

    title = "torch.jit.script + torch.onnx (TorchScript)"
    rank = 95
    scripted = True
