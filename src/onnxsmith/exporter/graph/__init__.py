"""Changes and checks of the captured graph: the user's names, weights, padding, random nodes, constant inputs."""
