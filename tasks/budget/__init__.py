"""Charges plans to the ledger, compares the ledger with bundles, and re-prices past releases."""
