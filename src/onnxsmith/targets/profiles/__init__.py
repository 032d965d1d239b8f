"""Predicts from public tables, without running anything, which nodes of a model a target accepts."""
