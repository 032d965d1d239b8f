"""Makes one graph out of another: copies, cuts, inlines, exposes tensors, moves weights to inputs."""
