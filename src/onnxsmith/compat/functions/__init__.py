"""Holds one function of another library per file; the file and its function have the same name."""
