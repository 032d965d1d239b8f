"""Ways in which a model can fail, one a file."""
