"""The parts that connect a run to Prefect: its API, forms, notices, and the end of lost runs."""
