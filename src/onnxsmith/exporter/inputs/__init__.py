"""The inputs of an export: example inputs, dynamic axes, and named tensors of nested arguments."""
