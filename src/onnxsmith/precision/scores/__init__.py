"""Measures how well a model does its task. Each score is a class."""
