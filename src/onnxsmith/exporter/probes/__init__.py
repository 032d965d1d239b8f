"""The probes of a diagnosis: each answers one question about a module."""
