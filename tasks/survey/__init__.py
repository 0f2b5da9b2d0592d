"""The private side: ingest, validate and tally a survey, here or in its own engine."""
