"""Which planted faults the tests and the audits notice.

    python -m benchmarks.mutations [--only TEXT ...] [--audits] [--jobs N]

Each fault is applied to a copy of the tree, in which the tests that ought to notice it are run; with
``--audits`` also the short and the full audit of every kind of release.  The result is a table in
Markdown, and the exit code is 1 if the tests miss a fault.
"""
