"""Looks at files before they are committed: models, their data, and weights. Runs no model."""
