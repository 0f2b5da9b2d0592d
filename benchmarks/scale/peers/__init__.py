"""The same private two-way table by other libraries, each in an environment of its own.

    __main__       makes the survey, runs everyone, one at a time, prints a JSON line for each
    survey         the made-up survey, from a fixed public seed
    environment    an environment of its own for each library, from pinned versions (``PEER.txt``)
    plot           draws the lines of several sizes
    protocol       what each process gets, measures and prints
    ours, published, opendp, tumult, smartnoise, pipelinedp, diffprivlib
                   the table by that library: start, load, query

A process is ``python -m benchmarks.scale.peers.PEER``, by the interpreter of that environment, so that
the modules that it imports from here need nothing but Python itself.
"""
