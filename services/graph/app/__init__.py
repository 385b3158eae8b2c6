"""The use cases of graph, over its port: plain functions that are handed the store and the caller."""
