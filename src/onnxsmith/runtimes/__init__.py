"""Runs models. Each runtime has a file, its `prepare` returns a session, and a session runs feeds."""
