"""Data of a user: what goes into a model, and what is expected of it. A class for each kind."""
