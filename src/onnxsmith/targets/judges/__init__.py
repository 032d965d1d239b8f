"""Asks the software of targets, in a child process each, whether it takes a model."""
