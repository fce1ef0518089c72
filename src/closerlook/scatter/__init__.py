"""Points of a space in two dimensions: which points are shown, their positions over a training, and their clusters."""
