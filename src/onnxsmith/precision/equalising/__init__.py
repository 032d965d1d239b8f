"""Moves large channels of activations into the weights that read them, so that 8 bits hold both."""
