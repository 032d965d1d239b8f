"""Holds the tasks of models, with one file for each task. A task says which interface fits, and which processing goes
into the bundle."""
