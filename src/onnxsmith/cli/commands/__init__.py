"""The commands, one a file: options as a frozen dataclass, `run()` gives a report. They never print and never exit."""
