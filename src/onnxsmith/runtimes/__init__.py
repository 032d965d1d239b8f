"""Runs models, by one runtime in each file: `prepare` returns a session, and a session runs feeds."""
