"""The command line: commands and their options, and reports in the terminal and as HTML."""
