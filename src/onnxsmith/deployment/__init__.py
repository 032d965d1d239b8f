"""Checks a model for its targets, bundles it with code and data, and measures its speed."""
