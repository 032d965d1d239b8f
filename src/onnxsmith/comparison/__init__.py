"""Compares two models: their outputs (`outputs`), their graphs (`graphs`), and reduces a failing one (`reduction`)."""
