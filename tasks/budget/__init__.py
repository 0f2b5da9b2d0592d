"""Charging plans to the ledger, checking ledger against bundles, and re-pricing histories."""
