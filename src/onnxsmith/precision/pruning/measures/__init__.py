"""Measures how much channels matter. Each measure is a class."""
