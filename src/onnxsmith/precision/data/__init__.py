"""Reads the user's data: the inputs of a model and the expected predictions. Each kind of data is a class."""
