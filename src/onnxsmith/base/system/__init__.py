"""What differs between operating systems, one purpose a file. No other module asks which system it runs on.

Each file holds an interface, one class for each way to do it, and `HERE`: the one for this machine, chosen by what
Python has here and not by the system's name. Importing a file works on every system.
"""
