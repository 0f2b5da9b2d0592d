"""The Prefect flows, and the command line that runs them."""

import tasks  # noqa: F401 - before Prefect is imported, so that it reports nothing to its makers
