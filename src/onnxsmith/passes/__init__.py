"""Changes to a whole model, one a file."""
