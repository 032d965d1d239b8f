"""Local rewrites, one per file."""
