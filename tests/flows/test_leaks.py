"""Secrets are planted in every column; then everything that Prefect and the ledger keep is searched."""

import base64
import os
from pathlib import Path

import pytest

from dpcore.errors import DPReleaseError

SECRET = "SECRET7391"
NUMBER = 8675309


def occurrences(folder: Path, *needles: bytes) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(needle in path.read_bytes() for needle in needles)
    ]


def encodings(text: str) -> list[bytes]:
    """The text as such and inside base64, at each of its three alignments."""
    plain = text.encode()
    shifted = [base64.b64encode(b"x" * shift + plain)[4 if shift else 0 : -4] for shift in range(3)]
    return [plain, plain.hex().encode(), text.encode("utf-16-le"), *shifted]


@pytest.mark.parametrize(
    ("column", "value"),
    [("sex", SECRET), ("region", SECRET), ("age", NUMBER), ("income", float(NUMBER))],
)
def test_a_refused_table_leaves_no_value_behind(
    prefect, plan_path, survey, own_home, column, value
):
    from flows.release import release

    survey[column] = survey[column].astype(object)
    survey.loc[5, column] = value
    survey.to_parquet(plan_path.parent / "survey.parquet")
    with pytest.raises(DPReleaseError):
        release(str(plan_path), "leak", str(plan_path.parent / "out"))
    needles = [*encodings(SECRET), *encodings(str(NUMBER))]
    os.remove(plan_path.parent / "survey.parquet")
    assert occurrences(prefect, *needles) == []
    assert occurrences(plan_path.parent, *needles) == []
    assert occurrences(own_home, *needles) == []


def test_an_unforeseen_failure_is_told_without_its_text(prefect, plan_path, own_home, monkeypatch):
    from flows.release import release

    def stumble(*_: object) -> None:
        raise ValueError(f"could not convert {SECRET}")

    monkeypatch.setattr("tasks.draw.tally", stumble)
    with pytest.raises(DPReleaseError, match="draw failed with ValueError") as caught:
        release(str(plan_path), "leak", str(plan_path.parent / "out"))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert occurrences(prefect, *encodings(SECRET)) == []
    kept = occurrences(own_home, SECRET.encode())
    assert len(kept) == 1
    assert Path(kept[0]).parent == own_home / "failures"
    assert Path(kept[0]).stat().st_mode & 0o077 == 0
    assert Path(kept[0]).parent.stat().st_mode & 0o077 == 0
