"""Compare models with their recorded outputs, costs and targets, so that no model becomes worse unnoticed.

A baseline is a text file for reviewers, baseline.json, and a data file beside it.
"""
