"""Changes to a module while it is captured, one a file; each is undone afterwards."""
