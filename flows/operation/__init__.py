"""What Prefect needs around a run: its API, forms, notices, and the end of lost runs."""
