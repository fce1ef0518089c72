"""Studies: a plan, its cells, their resumable execution, the table of results, and findings judged from it."""
