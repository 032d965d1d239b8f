"""Named conditions that a profile lists under `[[rules]]`, a class for each."""
