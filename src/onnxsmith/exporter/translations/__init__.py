"""Translations of PyTorch operators that its own exporter cannot translate, or translates wrongly, one a file."""
