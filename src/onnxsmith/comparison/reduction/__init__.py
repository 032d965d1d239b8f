"""Makes a failing model small: finds the fewest nodes that still fail in the same way."""
