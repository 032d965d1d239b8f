"""The sizes that operands must have, where onnx's inference is lenient or its message names no operand."""
