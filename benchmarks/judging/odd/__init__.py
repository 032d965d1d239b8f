"""Odd but valid models, by what is odd about them. Each module has `models()`, which yields `Odd`."""
