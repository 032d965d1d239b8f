"""Explains messages of torch, onnx and the runtimes, one cause in each file. `base.recognise` asks all causes."""
