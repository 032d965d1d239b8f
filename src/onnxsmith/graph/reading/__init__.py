"""Reads a model for people: scopes, weights, statistics of tensors, lines of the torch program."""
