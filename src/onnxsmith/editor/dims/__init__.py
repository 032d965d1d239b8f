"""Opens frozen sizes of a model, fixes symbolic dimensions, and compares the result row by row."""
