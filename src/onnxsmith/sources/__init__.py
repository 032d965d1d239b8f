"""Where models come from: the strings that people type, turned into what the other rooms work on."""
