"""What changed between two models: nodes, wiring, attributes, weights, interface. Nothing is run."""
