"""Writes operators that changed between two opsets in the later form. Each change has its own class."""
