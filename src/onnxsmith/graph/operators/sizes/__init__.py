"""Checks the sizes of operands where onnx's inference is lenient or its message names no operand."""
