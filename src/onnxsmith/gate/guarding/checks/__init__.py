"""Checks of `onnxsmith guard`: each is a file of this folder."""
