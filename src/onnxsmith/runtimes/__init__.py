"""Ways to run a model, one in each file: `prepare` returns a session, a session runs feeds."""
