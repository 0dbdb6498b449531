"""What is kept in files: checkpoints, their locks, and the states of exports."""
