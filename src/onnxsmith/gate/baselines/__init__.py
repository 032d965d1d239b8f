"""Holds models to what they gave, cost and ran on before."""
