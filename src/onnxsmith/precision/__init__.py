"""What a narrower float may compute of a model, and what it may not."""
