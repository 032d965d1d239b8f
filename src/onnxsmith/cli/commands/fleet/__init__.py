"""Run commands on many models, with many settings and versions.

A plan (TOML) names models, steps and settings. Each model with each setting is a cell.
"""
