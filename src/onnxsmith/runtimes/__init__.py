"""Ways to run a model. One file each: `prepare` gives a session, a session runs feeds."""
