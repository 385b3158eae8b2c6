"""`LexicalIndex` by an OpenSearch cluster: any process of a brain works on the same stores."""
