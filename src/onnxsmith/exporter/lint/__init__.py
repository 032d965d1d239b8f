"""Checks of the source of forward, one a file. `base.py` says what a check is, `_flow.py` what it can ask."""
