"""How operators pass channels on, one family a file."""
