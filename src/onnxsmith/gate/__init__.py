"""Holds a model to what it gave before, or to another way of computing it."""
