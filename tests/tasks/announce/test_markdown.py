"""What a person typed is shown as typed: never as markup, a link or an image."""

import html

import pytest
from markdown_it import MarkdownIt

from schemas.text import escape


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
