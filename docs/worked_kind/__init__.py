"""A kind of release as a package of one's own would bring it; ``how-to/add-a-kind.md`` explains it."""
