"""Rewrites of shape arithmetic whose results are known."""
