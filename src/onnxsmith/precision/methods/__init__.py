"""Makes models smaller by a narrower precision. Each method is a class."""
