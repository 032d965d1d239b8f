"""Everything that reaches into another library: what is replaced there while a block runs, and its private names."""
