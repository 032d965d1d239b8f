"""Walks over the parts of a graph, and describes them: nodes, values, subgraphs, names, schemas of operators."""
