"""The steps of an edit, one in each file. The file's name is the step's name in Python and in a patch file."""
