"""Models of the transformers library from a local folder: the class for a task, its weights, example inputs for it.

`transformers` is imported when such a model is asked for, and by nothing else.
"""
