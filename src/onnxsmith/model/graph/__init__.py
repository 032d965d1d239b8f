"""What a graph consists of, and how to walk it: nodes, values, subgraphs, names, the specification's schemas."""
