"""The graph in a server that speaks Bolt: Neo4j, Community edition enough."""
