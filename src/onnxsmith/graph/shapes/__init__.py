"""Infers shapes and known integers, as expressions over symbolic dimensions."""
