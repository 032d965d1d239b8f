"""Ways to capture a torch module as a graph, one a file. `exporter/graph/capture.py` holds their order."""
