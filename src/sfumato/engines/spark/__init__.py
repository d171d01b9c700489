"""The Spark engine: only sums leave a task, or reports that every attempt repeats."""
