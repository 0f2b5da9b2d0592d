"""Compares a synthetic table with the real one, without noise: for public test tables.

The results are not private, so they must not be published with a release of the real records.
``require_public`` refuses tables that a ledger may know as private.
"""
