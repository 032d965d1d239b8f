"""Follows channels through operators. Each family of operators is a class."""
