"""Holds the forms that a bundle can have, one a file."""
