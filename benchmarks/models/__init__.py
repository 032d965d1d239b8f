"""The models of the corpus: what is shipped, what is exported, what is built."""
