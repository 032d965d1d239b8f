"""What a module itself tells before it is traced: its source, a run of it, other sizes, its paths of computation."""
