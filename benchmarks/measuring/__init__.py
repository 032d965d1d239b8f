"""Measuring simplifiers: one process a tool and file, what came of it, and tables of it."""
