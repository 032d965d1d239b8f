"""How much a channel matters, one measure a file."""
