"""Loads models of the transformers library from a local folder: the class for a task, its weights, its example inputs.

Only this folder imports `transformers`, and only when a model is loaded.
"""
