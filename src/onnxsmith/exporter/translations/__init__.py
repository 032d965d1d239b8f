"""Translations of PyTorch operators that its own exporter cannot translate, or translates wrongly, by subject."""
