"""What a person typed is shown as typed: never as markup, a link or an image; and no table is empty."""

import html

import pytest
from markdown_it import MarkdownIt

from dpcore.accounting.budget import Budget
from schemas.text import escape
from tasks.announce.markdown import explanation
from tasks.bundle.reader import BundleReader
from tasks.catalogue import write_catalogue
from tests.conftest import those_slow
from tests.plans import MECHANISMS, plan_of
from tests.tasks.made_up import publish_made_up


@pytest.mark.parametrize(
    "typed",
    [
        "![x](https://example.org/x.png)",
        "<img src=x onerror=alert(1)>",
        "&lt;b&gt; &copy;",
        "**bold** _it_ ~~gone~~ `code` [a]: b",
        "one\n\n# two\n\n- three\n\n```",
        "a | b",
        "back\\slash \\*",
    ],
)
@pytest.mark.parametrize("around", ["# {}", "**{}**, release", "Requested by {}."])
def test_typed_text_is_one_line_of_plain_text(typed, around):
    made = MarkdownIt("gfm-like", {"linkify": False})
    before, after = made.render(around.format("TYPED")).split("TYPED")
    shown = made.render(around.format(escape(typed))).removeprefix(before).removesuffix(after)
    assert "<" not in shown
    assert html.unescape(shown) == " ".join(typed.split())


@pytest.mark.parametrize("typed", ["http://example.org", "www.example.org", "me@example.org"])
def test_no_address_stays_whole_for_a_program_that_makes_links(typed):
    assert typed not in escape(typed)


@pytest.mark.parametrize(
    "kind",
    those_slow({kind: None for kind, _ in MECHANISMS}, ("density", "microdata-margins", "model")),
)
def test_a_plan_of_one_kind_alone_is_announced_published_and_listed(kind, tmp_path):
    plan = plan_of(kind, dict(reversed(MECHANISMS))[kind], "ordinary", ordinary=True)
    assert "| release |" in explanation(plan, None, Budget())
    tables = BundleReader.open(publish_made_up(plan, "r1", tmp_path)).manifest.tables
    assert any("sampling_error" in each.columns for each in tables) == plan.includes_sampling
    assert write_catalogue(tmp_path, tmp_path).exists()


def test_models_alone_are_announced_without_a_table_of_errors():
    assert "## Expected error" not in explanation(
        plan_of("model", "noisy-scores", 1), None, Budget()
    )
