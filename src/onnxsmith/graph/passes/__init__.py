"""Changes to a whole model, one per file."""
