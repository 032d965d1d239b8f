"""The forms of int8 that runtimes compute with their own kernels, one a file."""
