"""Describes the forms of int8 and int4 for which runtimes have their own kernels. Each form is a class."""
