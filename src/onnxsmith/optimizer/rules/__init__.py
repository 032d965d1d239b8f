"""Local rewrites, in one file for each subject."""
