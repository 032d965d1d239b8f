"""Rewrites of conditions and branches."""
