"""What `benchmarks/export.py` is made of: suites of modules, the exporters, the judge, the processes that run them."""
