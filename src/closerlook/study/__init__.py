"""Many questions: a plan, the cells it makes, their resumable execution, and the table that comes out."""
