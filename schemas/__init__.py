"""The documents: plans, manifests and registry records, as pydantic models."""
