"""Edits a model: nodes addressed by name or pattern, all or nothing, verified, repeatable from a file."""
