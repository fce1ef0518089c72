"""The built-in tasks: a corpus written by a small grammar of our own, and that grammar."""
