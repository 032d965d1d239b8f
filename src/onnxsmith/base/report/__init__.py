"""Reports: what a command did, as frozen dataclasses that renderers and JSON readers share."""
