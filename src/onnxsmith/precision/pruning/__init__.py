"""Removes channels from a model: finds which tensors share a channel, chooses channels, removes them, and proves the
result."""
