"""Deployments of an agency's plans, and the server and worker that serve them."""
