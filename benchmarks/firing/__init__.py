"""Which members of onnxsmith's rooms fire: the counting, and the models that are counted."""
