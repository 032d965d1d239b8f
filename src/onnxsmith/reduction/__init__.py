"""Makes a failing model small: the fewest nodes that still fail in the same way."""
