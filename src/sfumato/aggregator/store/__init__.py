"""The store: batches counted once, in SQLite or PostgreSQL."""
