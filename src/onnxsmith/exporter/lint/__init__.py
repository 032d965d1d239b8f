"""The linter's checks of the source of forward. `_flow.py` computes the values of expressions for the checks."""
