"""What every package uses: problems, reports, settings, members of folders, clocks, limits, the operating system."""
