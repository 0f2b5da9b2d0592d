"""Kernel machines in a public, finite feature space."""
