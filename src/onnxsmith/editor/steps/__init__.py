"""The steps of an edit, one a file. The file's name is the step's name in Python and in a patch file."""
