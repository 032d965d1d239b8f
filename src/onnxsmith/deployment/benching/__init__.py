"""How long models take: latency, loading, memory and throughput, and two models against each other."""
