"""What a model computes on the way: the values of its tensors, as many at once as fit."""
