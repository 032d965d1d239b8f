"""Writes the help of the command line: all commands by situation, one command with its usual options and examples."""
