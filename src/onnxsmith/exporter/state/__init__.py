"""The state that a module keeps between calls, as inputs and outputs of its graph."""
