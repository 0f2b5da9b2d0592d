"""Publishes, verifies, signs and reads bundles; nothing here can reach the survey."""
