"""Changes to a module while it is captured, by subject; each is undone afterwards."""
