"""Writes operators that changed between two opsets in the earlier form. Each change has its own class."""
