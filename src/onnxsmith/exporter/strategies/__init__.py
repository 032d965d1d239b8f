"""Ways to capture a torch module as a graph, one a file. `exporter/graph/program_capture.py` holds their order."""
