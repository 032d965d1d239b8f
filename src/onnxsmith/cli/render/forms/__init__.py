"""Forms of a report that `--report FILE` writes. Each form is a file of this folder, called as its ending."""
