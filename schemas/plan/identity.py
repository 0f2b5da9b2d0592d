"""Valid names of datasets and ids of releases. Both are used as names of folders."""

import re

from dpcore.errors import InputError


def check_dataset(name: str) -> str:
    """Return the name if it is valid for a dataset. Otherwise raise ``InputError``."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,79}", name):
        raise InputError(
            f"dataset {name!r}: use at most 80 lower-case letters, digits and -, not beginning with -"
        )
    return name


def check_release_id(release_id: str) -> str:
    """Return the id if it is valid for a release. Otherwise raise ``InputError``."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,99}", release_id):
        raise InputError(
            f"release id {release_id!r}: use at most 100 lower-case letters, digits and -, not"
            " beginning with -"
        )
    return release_id
