"""Kinds of stores for the rows of cells, one file each."""
