"""How operators pass channels on, a class for each family."""
