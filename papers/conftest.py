"""The fixtures of the project's own tests."""

from tests.conftest import own_home, plan_document, plan_path, survey
from tests.reproducible import pytest_fixture_setup, pytest_runtest_protocol

__all__ = [
    "own_home",
    "plan_document",
    "plan_path",
    "pytest_fixture_setup",
    "pytest_runtest_protocol",
    "survey",
]
