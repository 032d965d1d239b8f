"""Makes a graph smaller without changing its numbers."""
