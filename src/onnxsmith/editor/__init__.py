"""Edits a model, whose nodes are addressed by name or pattern. An edit is applied completely or not at all, is
verified, and can be repeated from a file."""
