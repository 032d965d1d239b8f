"""`build`: a whole model written in Python, checked line by line, run, and then written."""
