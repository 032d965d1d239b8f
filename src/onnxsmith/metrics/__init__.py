"""How far apart two arrays are, one measure a file."""
