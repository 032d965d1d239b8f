"""A torch module as a side whose tensors inside can be compared: traced, or recorded while it runs."""
