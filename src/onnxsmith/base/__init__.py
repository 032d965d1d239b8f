"""Holds the tools of every package: problems, reports, settings, members of folders, clocks, limits, the operating
system."""
