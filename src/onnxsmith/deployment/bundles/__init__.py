"""Writes a verified model as a folder that runs without torch (`bundle`). Each form has a file in `forms/`, each task a
file in `tasks/`."""
