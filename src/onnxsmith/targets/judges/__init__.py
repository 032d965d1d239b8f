"""Asks targets, the software that is to run a model, what they do with the model. Each target is asked in a child
process."""
