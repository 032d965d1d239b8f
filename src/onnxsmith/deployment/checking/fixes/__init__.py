"""Rewrites models so that a target takes them, with a class for each fix."""
