"""Rewrites models so that a target takes them, one fix a class."""
