"""Draws one room as a picture, without a browser."""
