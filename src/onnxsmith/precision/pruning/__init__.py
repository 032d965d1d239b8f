"""Removes channels from a model: which tensors share a channel, which channels go, and what proves the result."""
