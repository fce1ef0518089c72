"""Studies: a plan, the cells it needs, their resumable execution, the table of results, and the findings judged from it."""
