"""Compares what two predict functions return, each kind of answer by its own measure."""
