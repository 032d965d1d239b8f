"""Ways to make a model smaller by a narrower precision, one a file."""
