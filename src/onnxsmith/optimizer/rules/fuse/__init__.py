"""Rewrites that fuse several nodes into one."""
