"""Measures models: latency, loading, memory and throughput, and one model against another."""
