"""Named conditions that a profile lists under `[[rules]]`, one a file."""
