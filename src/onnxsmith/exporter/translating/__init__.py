"""Translates PyTorch's operators to ONNX: by the translations of this package and those that the user registered."""
