"""The figures of the source papers, drawn again with the mechanisms of dprelease.

    python -m benchmarks.papers                 all experiments; writes no page
    python -m benchmarks.papers hall-2.2        one of them
    make papers                                 all of them, and docs/pages/explanation/papers.md

Every experiment prints its figures as JSON lines and draws its plot.  Noise comes from releases and
mechanisms of ``dpcore``, through the privacy line, with seeded sources so that the figures repeat.

    experiment    what an experiment is, the list of all, and how one is run
    page          the figures beside what the papers report
    others        one experiment each, or two that differ only in their data
"""
