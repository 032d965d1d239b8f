"""Defines the steps of an edit, with one file for each step. The file's name is the step's name in Python and in a
patch file."""
