"""The fixtures of the project's own tests."""

from tests.conftest import own_home, plan_document, plan_path, survey

__all__ = ["own_home", "plan_document", "plan_path", "survey"]
