"""A page as a tree, and what must hold of every page of ours."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tasks.report.page import REPORT

VOID = {"meta", "link", "br", "input", "hr", "img"}


@dataclass
class Node:
    """An element with its attributes, children and own text."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    def all(self, *tags: str) -> Iterator["Node"]:
        """This element and those below it, of some tags or of any."""
        if not tags or self.tag in tags:
            yield self
        for child in self.children:
            yield from child.all(*tags)

    @property
    def words(self) -> str:
        return self.text + "".join(child.words for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("page")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list) -> None:
        node = Node(tag, {key: value or "" for key, value in attrs})
        assert len(node.attributes) == len(attrs), f"{tag} has an attribute twice"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.open[-1].children.append(Node(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def read_page(html: str) -> Node:
    """The page; fails where elements are not nested properly."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.root


def page_of(bundle: Path) -> Node:
    """The page of a bundle, which is sound."""
    return require_sound((bundle / REPORT).read_text(encoding="utf-8"), bundle)


def part_of(page: Node, name: str) -> Node:
    """The part of the page about a release or a synthetic table, such as ``release-people``."""
    return next(n for n in page.all("section") if n.attributes.get("aria-labelledby") == name)


def require_sound(html: str, folder: Path) -> Node:
    """Check what must hold of every page in ``folder``, and return it as a tree."""
    page = read_page(html)
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page.all("a"):
        address = node.attributes["href"]
        if address.startswith("#"):
            assert address[1:] in ids
        else:
            assert (folder / unquote(address.partition("#")[0])).is_file(), address
    assert not re.findall(r"(?:src|href|action)=[\"'](?:\w+:)?//", html)
    assert not re.findall(r"url\((?!#)|@import", html)
    levels = [int(node.tag[1]) for node in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    for table in page.all("table"):
        assert next(table.all("caption")).words.strip()
        assert {node.attributes["scope"] for node in table.all("th")} <= {"row", "col"}
        for row in table.all("tr"):
            assert next(row.all("th"))
    for picture in page.all("svg"):
        if picture.attributes.get("aria-hidden") != "true":
            assert picture.attributes["role"] == "img"
            assert picture.attributes["aria-label"]
            assert [node.tag for node in picture.children[:2]] == ["title", "desc"]
            assert all(node.words.strip() for node in picture.children[:2])
            for node in picture.all():
                places = [node.attributes.get(key, "") for key in ("x", "y", "d", "width", "cx")]
                assert not any("nan" in place or "inf" in place for place in places)
    root = next(page.all("html"))
    assert root.attributes["lang"] == "en"
    assert next(page.all("main")).attributes["id"] in {
        node.attributes["href"][1:]
        for node in page.all("a")
        if node.attributes.get("class") == "skip"
    }
    return page
