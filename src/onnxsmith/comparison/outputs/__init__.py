"""`compare`: compares two models, files or torch modules, on the same inputs, and layer by layer."""
