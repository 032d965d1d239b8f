"""The graph that the exporter gave, made into what its user asked for."""
