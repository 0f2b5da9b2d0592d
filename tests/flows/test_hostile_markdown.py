"""Texts that try to be markup, links or scripts, in every field that a person fills in.

Prefect's page renders artifacts and descriptions as Markdown: what was typed is shown in them as typed.
That any text is escaped so is tested with ``escape``, and the report and the catalogue with theirs.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from markdown_it import MarkdownIt

from tasks.announce.markdown import preview
from tests.bare import PLAN

pytestmark = pytest.mark.usefixtures("prefect")

HOSTILE = [
    "![seen](http://evil0.example/x.png)",
    '<img src=http://evil1.example/x.png onerror="window.evil()">',
    "<script>window.evil=2</script> </script> <b>evil2</b>",
    "[press](http://evil3.example) <http://evil3.example>",
    "<a href=http://evil4.example>here</a> <svg onload=window.evil=4>",
    "a | **evil6** | `evil6` | ~~evil6~~ | _evil6_ |",
]
THEIRS = re.compile(r"<[^<>]*evil|<(?:strong|em|code|s|del|b)>[^<]*evil")
"""A tag that holds a hostile text, or that a hostile text was made of."""


def hostile_plan() -> dict[str, Any]:
    """The small plan of other tests, with a hostile text wherever it takes text."""
    document: dict[str, Any] = yaml.safe_load(PLAN)
    categories = ["F", *HOSTILE[:4]]
    labels = {category: f"{HOSTILE[4]} {k}" for k, category in enumerate(categories)}
    sex = {"type": "categorical", "categories": categories, "labels": labels}
    document["columns"]["sex"] = sex | {"label": HOSTILE[5], "description": HOSTILE[1]}
    document["columns"]["age"] |= {
        "unit": HOSTILE[1],
        "label": HOSTILE[0],
        "description": HOSTILE[2],
    }
    for release, title in zip(document["releases"], HOSTILE[1:3], strict=True):
        release["title"] = title
    document["synthesis"][0]["title"] = HOSTILE[2]
    fields = ("publisher", "contact", "licence", "citation", "region", "intended_use")
    texts = dict(zip(fields, HOSTILE, strict=True))
    document["publication"] = texts | {"title": HOSTILE[0], "description": "\n\n".join(HOSTILE)}
    opened = [release["name"] for release in document["releases"]]
    return document | {"operation": {"requests": {"releases": opened, "part": 1}}}


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)


@pytest.mark.slow
def test_nothing_in_an_artifact_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from prefect.client.orchestration import get_client

    from flows.ad_hoc import ad_hoc
    from flows.audit import audit

    document, shown = hostile_plan(), list[str]()
    (tmp_path / "hostile.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    categories = document["columns"]["sex"]["categories"]
    survey = pd.DataFrame({"sex": categories * 8, "age": range(20, 60)})
    survey.to_parquet(tmp_path / "survey.parquet")
    monkeypatch.setenv("DPRELEASE_PLANS", str(tmp_path))
    monkeypatch.setenv("DPRELEASE_OUT", str(tmp_path / "out"))
    monkeypatch.setattr("flows.course.await_approval", lambda *given: shown.append(preview(*given)))
    ad_hoc("hostile", alpha="0.4", title=HOSTILE[5], requester=HOSTILE[2])
    audit(str(tmp_path / "hostile.yaml"), quick=True)
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts(limit=200)
    shown += [str(artifact.data) for artifact in artifacts if artifact.type == "markdown"]
    assert len([text for text in shown if "evil" in text]) >= 3
    for text in shown:
        assert not THEIRS.search(rendered(text)), text


def test_what_is_theirs_would_be_found():
    for text in HOSTILE:
        assert THEIRS.search(rendered(text)), text
