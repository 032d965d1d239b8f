"""The probes of a diagnosis, one a file: each answers one question about a module."""
