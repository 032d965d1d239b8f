"""`check`: finds whether targets take a model, which nodes stop them, and which rewrites help."""
