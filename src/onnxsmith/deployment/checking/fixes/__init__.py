"""Rewrites that help a target to take a model, one a file."""
