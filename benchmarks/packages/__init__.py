"""What `packages.py` measures: models out of packages, the exporters, the judge."""
