"""Counts the costs of a model: multiply-accumulates, parameters and memory, by torch module."""
