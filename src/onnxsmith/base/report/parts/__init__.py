"""The kinds of parts that reports have, a class for each."""
