"""Asks the software of targets whether it takes a model, with a child process for each target."""
