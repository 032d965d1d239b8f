"""Rewrites that follow from what operators mean."""
