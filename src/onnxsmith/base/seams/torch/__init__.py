"""Uses private parts of torch, a file for each purpose. Imports torch."""
