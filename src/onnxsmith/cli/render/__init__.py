"""Shows reports as terminal text and HTML, and progress as a bar."""
