"""From PyTorch's operators to ONNX's: the translations of this package, and operators of the user's own."""
