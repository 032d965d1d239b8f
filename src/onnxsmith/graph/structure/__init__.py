"""The parts of a graph, and walks over them: nodes, values, subgraphs, names, schemas of operators."""
