"""The commands, a class each: options as a frozen dataclass, `run()` gives a report. They never print and never exit."""
