"""Finds whether targets take a model (`check`), which nodes stop the targets, and which rewrites help."""
