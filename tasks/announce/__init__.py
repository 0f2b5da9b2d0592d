"""What a Prefect operator sees: artifacts, as markdown, tables and links."""
