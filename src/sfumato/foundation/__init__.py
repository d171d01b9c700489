"""Array types, canonical JSON, atomic files, projections and exact solving, for every package."""
