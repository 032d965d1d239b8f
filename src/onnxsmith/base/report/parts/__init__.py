"""The kinds of parts that reports have, one a file."""
