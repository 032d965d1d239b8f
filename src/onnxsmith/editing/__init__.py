"""Edits of a model: addressed by name or pattern, all or nothing, verified, and repeatable from a file."""
