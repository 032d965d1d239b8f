"""Hides the differences between operating systems, one purpose a file. No other module asks which system it runs on.

Each file holds an interface, one class for each implementation, and `HERE`: the implementation for this machine. The
choice depends on what Python offers here, not on the system's name. Every file can be imported on every system.
"""
