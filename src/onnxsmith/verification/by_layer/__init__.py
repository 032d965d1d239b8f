"""Compares two models tensor by tensor: pairs their tensors, and finds where they first differ."""
