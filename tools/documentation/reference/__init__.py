"""Writes the reference from the code: each module here has `pages`, which returns texts by their path on the site."""
