"""Bundles: publish, verify, sign and read them back; nothing here can reach the survey."""
