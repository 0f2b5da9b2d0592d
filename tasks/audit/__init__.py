"""The audit of a plan's privacy as Prefect steps, and its picture."""
