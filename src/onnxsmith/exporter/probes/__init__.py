"""The probes of a diagnosis. Each probe answers one question about a module."""
