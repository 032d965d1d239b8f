"""The version, read by the build and by reports."""

__version__ = "0.2.0"
