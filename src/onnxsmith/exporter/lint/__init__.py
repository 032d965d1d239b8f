"""The linter's checks of the source of forward. A check asks `_flow.py` for the values of expressions."""
