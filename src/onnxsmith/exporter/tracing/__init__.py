"""Traces a module as a program of torch.export."""
