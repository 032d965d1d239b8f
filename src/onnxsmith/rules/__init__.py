"""Local rewrites, one a file."""
