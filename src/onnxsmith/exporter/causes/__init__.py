"""Explains messages of torch, onnx and the runtimes. `base.recognise` asks all causes."""
