"""Language and speech models with a state, and how a file with a state generates."""
