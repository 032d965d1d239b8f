"""Reads and writes models: ONNX files, external data, text; refuses broken models, and never leaves half a file."""
