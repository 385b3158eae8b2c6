"""Real servers for tests, each from a pinned list of jars: `fetch()` fills the cache, `running(folder)` starts one."""
