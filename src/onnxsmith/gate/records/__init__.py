"""Verification records: what a command read, wrote and compared, as a file that can be checked later."""
