"""Finds which nodes of a model may compute in a narrower float."""
