"""The page of a run: models by settings, and beside it the report of each cell as a page of its own."""
