"""Ways to capture a torch module as a graph, one a file. `exporter/capture.py` holds their order."""
