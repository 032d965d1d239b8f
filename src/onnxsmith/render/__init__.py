"""Reports as terminal text, JSON and HTML."""
