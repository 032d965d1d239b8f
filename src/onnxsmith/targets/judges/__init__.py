"""Targets: where a model should run. Each asks the real software, in a child process, what it does with a model."""
