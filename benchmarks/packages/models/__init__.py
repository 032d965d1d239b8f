"""One file for each package: its `cases` are the models that are exported."""
