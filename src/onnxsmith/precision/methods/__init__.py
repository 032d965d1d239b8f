"""Ways to make a model smaller by a narrower precision, a class for each."""
