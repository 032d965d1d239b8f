"""torch.jit.script, then the older exporter of torch.onnx: keeps branches and loops on the values of tensors."""

from __future__ import annotations

from onnxsmith.exporter.strategies.torchscript import TorchScript


class TorchScriptScript(TorchScript):
    """Compiles the module from its source, so that an `if` or a loop on the value of a tensor becomes If or Loop.

    TorchScript supports only a part of Python, so this strategy captures fewer modules than a trace.
    """

    title = "torch.jit.script + torch.onnx (TorchScript)"
    rank = 95
    scripted = True
