"""Changes to a module while it is captured, by subject. Each change is undone afterwards."""
