"""Puts the processing of pictures and of answers into a graph, compares it with Pillow and numpy, and takes it out
again."""
