"""What a model is for, one task a file: which interface fits, and which processing goes into the bundle."""
