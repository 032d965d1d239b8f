"""Several nodes into one."""
