"""Data of a user: what goes into a model, and what is expected of it. One kind a file."""
