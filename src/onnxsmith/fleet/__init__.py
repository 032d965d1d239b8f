"""Runs the verbs on many models: a plan gives cells, an engine runs each cell, a store keeps its row."""
