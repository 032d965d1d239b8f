"""Strategies: ways to capture a torch module as a graph, one in each file. `exporter/graph/program_capture.py` holds
their order."""
