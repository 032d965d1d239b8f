"""Shapes and known integers: expressions over symbolic dimensions, and what follows for every value."""
