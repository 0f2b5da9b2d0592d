"""The catalogue: every whole bundle, no damaged one, and nothing that leads out of the site."""

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from dpcore.errors import BundleError, InputError
from flows.cli import main
from schemas.plan import load_plan
from schemas.plan.digest import digest_of
from tasks.catalogue import write_catalogue
from tasks.catalogue.bundles import Dataset, find_bundles
from tasks.catalogue.page import catalogue_page
from tasks.report.page import REPORT
from tests.conftest import plan_of_every_kind
from tests.tasks.browser import PHONE, WIDE, require_accessible, require_fit, visit
from tests.tasks.made_up import publish_made_up
from tests.tasks.report.pages import require_sound

HOSTILE = "</script><script>alert(1)</script>\"' & abc"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Two datasets, the first with two releases."""
    folder, document = tmp_path_factory.mktemp("original"), small(plan_of_every_kind())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(folder / "home"))
        patch.delenv("DPRELEASE_LEDGER", raising=False)
        plan = load_plan(document)
        for release_id in ("r1", "r2"):
            publish_made_up(plan, release_id, folder / "published")
        other = document | {"dataset": "other", "publication": {"title": HOSTILE}}
        publish_made_up(load_plan(other), "r1", folder / "published")
    return folder


@pytest.fixture
def published(original, tmp_path):
    return shutil.copytree(original, tmp_path, dirs_exist_ok=True) / "published"


def small(document: dict) -> dict:
    """A plan that is published in no time."""
    releases = [r for r in document["releases"] if r["name"] in ("people", "wealth")]
    budget = {"granted": {"alpha": "10"}, "requested": {"alpha": "4"}}
    return document | {"releases": releases, "synthesis": [], "budget": budget}


def page_of(site: Path):
    return require_sound((site / "index.html").read_text(encoding="utf-8"), site)


@pytest.mark.slow
def test_every_release_is_listed_and_the_latest_comes_first(published):
    assert write_catalogue(published, published) == published / "index.html"
    page = page_of(published)
    assert "2 datasets, 3 releases" in page.words
    assert "8 of 10 alpha" in page.words
    sections = {n.attributes["aria-labelledby"]: n for n in page.all("section")}
    survey = sections["dataset-survey"]
    assert [next(r.all("th")).words for r in survey.all("tr")] == ["Release", "r2", "r1"]
    latest = next(n for n in survey.all("a") if n.words == "Latest report")
    assert latest.attributes["href"] == f"survey/r2/{REPORT}"
    (table,) = survey.all("table")
    assert [n.attributes["href"] for n in table.all("a")] == [
        f"survey/{r}/{REPORT}" for r in ("r2", "r1")
    ]
    addresses = {n.attributes["href"] for n in survey.all("a")}
    for path in (published / "survey").rglob("*"):
        assert path.is_dir() or path.relative_to(published).as_posix() in addresses


@pytest.mark.slow
def test_each_release_says_who_published_it_what_it_found_and_what_it_changed(original, tmp_path):
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    document = small(plan_of_every_kind())
    kept = next(r for r in document["releases"] if r["name"] == "people")
    document["releases"] = [kept | {"name": "inhabitants"}]
    document["budget"] = {"granted": {"alpha": "10"}, "requested": {"alpha": "2"}}
    document["publication"] |= {
        "publisher": "An office",
        "requester": "A student",
        "title": "Again",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(original / "home"))
        plan = load_plan(document)
        publish_made_up(plan, "r3", tmp_path / "published")
    published = tmp_path / "published"
    write_catalogue(published, published)
    words = page_of(published).words
    for said in ("Again", "An office; requested by A student"):
        assert said in words
    record = json.loads((published / "catalogue.json").read_text(encoding="utf-8"))
    releases = record["datasets"]["survey"]["releases"]
    assert releases["r1"]["changes"] == ["the first release of this dataset here"]
    assert releases["r2"]["changes"] == ["the same plan again, with new noise"]
    assert releases["r3"]["changes"][:2] == [
        "new measured tables and models: inhabitants",
        "removed measured tables and models: people, wealth",
    ]
    assert releases["r3"]["publisher"] == "An office"
    of_bundle = json.loads((published / "survey/r2/manifest.json").read_text(encoding="utf-8"))
    assert releases["r2"]["findings"] == of_bundle["findings"]


def test_two_datasets_of_one_title_are_told_apart(published):
    folder = published / "other/r1"
    bundle = next(b for d in find_bundles(published)[0] for b in d.bundles if b.path == folder)
    twins = [Dataset(name, (bundle,)) for name in ("one", "two")]
    page = catalogue_page(twins, [], published)
    assert all(f"({name})" in page for name in ("one", "two"))


def test_programs_read_the_same(published):
    write_catalogue(published, published)
    record = json.loads((published / "catalogue.json").read_text(encoding="utf-8"))
    survey = record["datasets"]["survey"]
    assert survey["latest"] == "r2"
    assert survey["releases"]["r1"]["alpha"] == "4"
    for release in survey["releases"].values():
        for file in release["files"]:
            assert (published / release["address"] / file).is_file()


def test_damaged_bundles_are_named_and_left_out(published):
    (published / "survey" / "r1" / "tables" / "people.parquet").write_bytes(b"")
    (published / "other" / "r1" / "manifest.json").unlink()
    shutil.copytree(published / "survey" / "r2", published / "copy" / "r2")
    with pytest.raises(
        BundleError, match="without 2 damaged bundles and 1 second copy of"
    ) as error:
        write_catalogue(published, published)
    words = page_of(published).words
    assert "1 dataset, 1 release." in words
    assert "r1: tables/people.parquet was changed" in words
    assert "r1: manifest.json is missing" in words
    duplicate = "survey/r2: is a second copy of release survey/r2, listed from copy/r2"
    assert duplicate in words
    assert duplicate in str(error.value)
    assert "survey/r1: tables/people.parquet was changed" in str(error.value)
    assert str(published) not in (published / "index.html").read_text(encoding="utf-8")
    shutil.rmtree(published / "copy")
    shutil.rmtree(published / "other")
    with pytest.raises(BundleError, match="was written without 1 damaged bundle:"):
        write_catalogue(published, published)


def test_bundles_and_datasets_are_found_by_links_and_listed_once(published, tmp_path):
    elsewhere = tmp_path / "another disk"
    elsewhere.mkdir()
    for place in ("survey/r1", "other"):
        (published / place).rename(elsewhere / Path(place).name)
        (published / place).symlink_to(elsewhere / Path(place).name)
    (published / "survey" / "latest").symlink_to("r2")
    (published / "survey" / "again").symlink_to("..")
    write_catalogue(published, published)
    assert "2 datasets, 3 releases" in page_of(published).words
    record = json.loads((published / "catalogue.json").read_text(encoding="utf-8"))
    addresses = [
        release["address"]
        for dataset in record["datasets"].values()
        for release in dataset["releases"].values()
    ]
    assert sorted(addresses) == ["other/r1", "survey/r1", "survey/r2"]


@pytest.mark.parametrize("file", ["manifest.json", "tables/people.parquet"])
def test_a_pipe_in_place_of_a_file_is_named_and_not_read(published, file):
    (published / "other" / "r1" / file).unlink()
    os.mkfifo(published / "other" / "r1" / file)
    with pytest.raises(BundleError, match=f"other/r1: {file} is not a regular file"):
        write_catalogue(published, published)


def test_a_folder_without_bundles_is_refused(tmp_path):
    with pytest.raises(InputError, match="no bundles"):
        write_catalogue(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_hostile_titles_are_shown_and_not_obeyed(published):
    write_catalogue(published, published)
    page = page_of(published)
    assert HOSTILE in page.words
    (script,) = page.all("script")
    assert "alert" not in script.words


def test_the_command_prints_the_page_and_tells_of_damage(published, capsys):
    assert main(["catalogue", str(published)]) == 0
    assert capsys.readouterr().out.strip() == str(published / "index.html")
    (published / "survey" / "r1" / "SHA256SUMS").write_text("")
    assert main(["catalogue", str(published), "--out", str(published / "site")]) == 6
    assert "survey/r1" in capsys.readouterr().err
    assert (published / "site" / "index.html").is_file()
    assert main(["catalogue", str(published / "nowhere")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_the_page_fits_and_axe_finds_nothing(chromium, published, width, scheme):
    page = write_catalogue(published, published)
    with visit(chromium, page, width, scheme) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        require_fit(tab)
        require_accessible(tab)


@pytest.mark.slow
def test_a_bundle_whose_plan_this_version_refuses_is_left_out(published, capsys):
    bundle = published / "survey" / "r1"
    file, sums = bundle / "manifest.json", bundle / "SHA256SUMS"
    manifest, before = json.loads(file.read_text()), sha256(file.read_bytes()).hexdigest()
    manifest["plan"]["columns"]["age"]["bounds"] = [5, 1]
    manifest["plan_digest"] = digest_of(manifest["plan"])
    file.write_text(json.dumps(manifest))
    after = sha256(file.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(before, after))
    for command in (["verify", str(bundle)], ["catalogue", str(published)]):
        assert main(command) == 6
        assert "the plan in the manifest is not valid: it was changed" in capsys.readouterr().err
    assert "r2" in (published / "index.html").read_text()
