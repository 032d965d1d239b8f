"""How much a channel matters, a class for each measure."""
