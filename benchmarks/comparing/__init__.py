"""Benchmarks of what compares models and takes them apart."""
