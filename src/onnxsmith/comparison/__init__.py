"""Holding one model to another: which inputs, which tolerance, how far apart."""
