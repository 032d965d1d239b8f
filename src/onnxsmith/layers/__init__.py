"""Inside two models: which tensors of one are which of the other, and where they part."""
