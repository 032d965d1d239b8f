"""One function of another library a file; the file and its function have one name."""
