"""Where a model is to run: software that is asked (`judges`), and public tables (`profiles`)."""
