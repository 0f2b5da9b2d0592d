"""Which planted faults the tests and the audits notice.

    python -m benchmarks.mutations [--only TEXT ...] [--by tests short full] [--jobs N]

Each fault is applied to a copy of the tree, in which the tests that ought to notice it are run; with
``--by short`` or ``full`` that audit too, of the release or the plan that the fault names.  The result
is a table in Markdown: the test that fails first, and whether an audit sees the fault or why none can.
The exit code is 1 if the tests miss a fault, or an audit more than a tenth of those that it can see.
"""
