"""Kinds of models that a plan may name, one file each."""
