"""Hold models to what they gave, cost and ran on before.

A baseline is a text file for reviewers, baseline.json, and a data file beside it.
"""
