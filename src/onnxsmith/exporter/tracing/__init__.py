"""From a module to a traced program."""
