"""How many multiply-accumulates an operator has: one family of operators a file."""
