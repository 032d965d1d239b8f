"""Makes the pages of the documentation site: the documents, and the reference from the code."""
