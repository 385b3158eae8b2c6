"""The graph in SQLite: `open_graph_store` in `wiring` hands a folder to `store.SqliteGraphStore`."""
