"""Measuring quantisers: real cases with labels, the other tools, and what each does to accuracy, size and latency."""
