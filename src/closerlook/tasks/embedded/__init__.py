"""The built-in corpus, and the small grammar that generates it."""
