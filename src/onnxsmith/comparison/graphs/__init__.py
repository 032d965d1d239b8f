"""Compares the graphs of two models without running them: nodes, wiring, attributes, weights, interface."""
