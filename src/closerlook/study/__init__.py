"""Studies: a plan, the cells (units of work) it needs, their execution, the results table, and the findings."""
