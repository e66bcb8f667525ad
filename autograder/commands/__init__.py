"""What ./grade can be asked for: grading, and the commands beside it."""
