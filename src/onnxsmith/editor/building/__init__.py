"""Runs `build`: a whole model is written in Python, checked line by line, run, and then written to a file."""
