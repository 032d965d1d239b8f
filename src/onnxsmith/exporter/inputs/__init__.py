"""The inputs of an export: example inputs, dynamic axes, and names for the tensors of nested arguments."""
