"""From a torch module to an ONNX model."""
