"""The metadata of a published bundle: its manifest, its draws, and how accurate its tables are."""
