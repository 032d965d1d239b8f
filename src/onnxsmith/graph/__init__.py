"""Reads, checks, changes and writes ONNX models, on onnx-ir. The only package that imports `onnx`."""
