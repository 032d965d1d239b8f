"""The commands, a class for each: options as a frozen dataclass, `run()` gives a report. They never print or exit."""
