"""Holds the page: the template, and the script and style that are built from `viewer/`."""
