"""The forms of int8 and int4 that runtimes compute with their own kernels, a class for each."""
