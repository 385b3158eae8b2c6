"""The retrieval pipeline as pure stages: ranked lists of several retrievers go in, one explained answer comes out."""
