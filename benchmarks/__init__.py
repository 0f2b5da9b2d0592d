"""Side-by-side measurements; each module runs with ``python -m benchmarks.<name>``."""
