"""Shows a model, two models side by side, and what was measured, as an HTML page or a picture."""
