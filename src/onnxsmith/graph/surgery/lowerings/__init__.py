"""How operators that changed between two opsets are written in the earlier one, a change a file."""
