"""Questions that a diagnosis asks, one a file. `base.py` says what it may ask them of."""
