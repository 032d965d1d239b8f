"""Shows a model, two models side by side, and what was measured, as one HTML page or as a picture."""
