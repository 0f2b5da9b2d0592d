"""What a published bundle states: its manifest, its draws, and how well its tables are known."""
