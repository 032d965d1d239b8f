"""Finds whether a target takes a model, by asking its software (`judges`) and from public tables (`profiles`)."""
