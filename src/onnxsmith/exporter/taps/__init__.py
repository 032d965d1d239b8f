"""Makes a torch module a side of a comparison by layer: traced, or recorded while it runs."""
