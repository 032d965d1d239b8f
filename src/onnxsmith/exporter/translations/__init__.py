"""Operators of PyTorch that its own exporter cannot write, or writes wrongly, one a file."""
