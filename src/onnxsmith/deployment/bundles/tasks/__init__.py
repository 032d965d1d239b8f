"""Holds the tasks of models, one a file: which interface fits a task, and which processing goes into the bundle."""
