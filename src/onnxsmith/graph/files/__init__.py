"""Reads and writes models: ONNX files, external data, text; refuses what is broken, and never leaves half a file."""
