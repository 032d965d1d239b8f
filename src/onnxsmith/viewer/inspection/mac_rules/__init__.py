"""How many multiply-accumulates an operator has: a class for each family of operators."""
