"""What every package stands on: array types, canonical JSON, atomic files, projections and exact solving."""
