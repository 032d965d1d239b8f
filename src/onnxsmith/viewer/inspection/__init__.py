"""Inspects a model or a file of weights without running it."""
