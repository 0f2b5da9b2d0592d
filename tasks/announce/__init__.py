"""Artifacts for Prefect operators: markdown, tables and links."""
