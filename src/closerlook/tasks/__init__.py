"""What is asked of a space: tasks, their readers and the catalogue."""
