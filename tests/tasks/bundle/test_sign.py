"""Signatures: made by the run or by hand, checked by us and by OpenSSL."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from flows.cli import main
from tasks.budget.reconcile import reconcile
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan


def write_keys(folder: Path, name: str, passphrase: bytes | None = None) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.generate()
    lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


@pytest.fixture
def keys(tmp_path) -> tuple[Path, Path]:
    return write_keys(tmp_path, "agency")


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    for name in ("KEY", "PASSPHRASE"):
        monkeypatch.delenv(f"DPRELEASE_SIGNING_{name}", raising=False)


def run(tmp_path: Path) -> Path:
    return release(small_plan(tmp_path), "r1", tmp_path / "out")


@pytest.fixture
def bundle(published, tmp_path) -> Path:
    """One that nobody has signed."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out" / "survey" / "r1"


def verify(bundle: Path, public: Path) -> int:
    return main(["verify", str(bundle), "--public-key", str(public), "--ledger", ledger_url()])


@pytest.mark.slow
def test_a_run_signs_with_the_key_that_the_environment_names(tmp_path, keys, monkeypatch, capsys):
    monkeypatch.setenv("DPRELEASE_SIGNING_KEY", str(keys[0]))
    tmp_path.chmod(0o755)
    bundle = run(tmp_path)
    assert (bundle / "SHA256SUMS.sig").stat().st_mode & 0o777 == 0o644
    assert "SHA256SUMS.sig" not in (bundle / "SHA256SUMS").read_text()
    assert verify(bundle, keys[1]) == 0
    assert "signature: made with the private key" in capsys.readouterr().out
    assert reconcile(Ledger(ledger_url()), tmp_path / "out") == []
    assert run(tmp_path) == bundle  # again, and nothing changes
    assert [path.name for path in bundle.parent.iterdir()] == ["r1"]


@pytest.mark.slow
def test_a_bundle_can_be_signed_later_and_anew(bundle, tmp_path, keys, capsys):
    assert verify(bundle, keys[1]) == 6
    assert "is not signed" in capsys.readouterr().err
    assert main(["sign", str(bundle), "--key", str(keys[0])]) == 0
    assert verify(bundle, keys[1]) == 0
    other, other_public = write_keys(tmp_path, "other")
    assert verify(bundle, other_public) == 6
    assert "was not made with this key" in capsys.readouterr().err
    assert main(["sign", str(bundle), "--key", str(other)]) == 0
    assert verify(bundle, other_public) == 0


def test_what_was_changed_after_it_was_signed_is_noticed(bundle, keys, capsys):
    assert main(["sign", str(bundle), "--key", str(keys[0])]) == 0
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        content = (bundle / name).read_bytes()
        (bundle / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert verify(bundle, keys[1]) == 6
        (bundle / name).write_bytes(content)
    (bundle / "SHA256SUMS.sig").write_bytes(b"")
    assert verify(bundle, keys[1]) == 6


def test_a_bundle_that_is_not_whole_is_not_signed(bundle, keys):
    (bundle / "tables" / "people.parquet").unlink()
    assert main(["sign", str(bundle), "--key", str(keys[0])]) == 6
    assert not (bundle / "SHA256SUMS.sig").exists()


def test_an_encrypted_key_asks_for_its_passphrase(bundle, tmp_path, monkeypatch, capsys):
    private, public = write_keys(tmp_path, "locked", b"open sesame")
    for passphrase in (None, "wrong"):
        if passphrase:
            monkeypatch.setenv("DPRELEASE_SIGNING_PASSPHRASE", passphrase)
        assert main(["sign", str(bundle), "--key", str(private)]) == 2
        assert "DPRELEASE_SIGNING_PASSPHRASE" in capsys.readouterr().err
    monkeypatch.setenv("DPRELEASE_SIGNING_PASSPHRASE", "open sesame")
    assert main(["sign", str(bundle), "--key", str(private)]) == 0
    assert verify(bundle, public) == 0


@pytest.mark.parametrize("content", [None, b"no key", "another kind"])
def test_a_key_that_is_none_stops_a_run_before_anything_is_charged(tmp_path, monkeypatch, content):
    path = tmp_path / "key.pem"
    if content == "another kind":
        content = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("DPRELEASE_SIGNING_KEY", str(path))
    with pytest.raises(InputError, match=r"key\.pem"):
        run(tmp_path)
    assert Ledger(ledger_url()).spent("survey") == Budget()


def test_openssl_makes_keys_for_us_and_checks_our_signatures(bundle, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")

    def openssl(*arguments: object) -> str:
        done = subprocess.run(
            ["openssl", *map(str, arguments)], capture_output=True, text=True, check=True
        )
        return done.stdout

    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    assert main(["sign", str(bundle), "--key", str(private)]) == 0
    assert verify(bundle, public) == 0
    files = ("-in", bundle / "SHA256SUMS", "-sigfile", bundle / "SHA256SUMS.sig")
    told = openssl("pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public, *files)
    assert "Verified Successfully" in told
