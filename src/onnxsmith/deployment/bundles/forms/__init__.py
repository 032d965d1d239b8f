"""Holds the forms that a bundle can have, with one file for each form."""
