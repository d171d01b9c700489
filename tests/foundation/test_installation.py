"""Hints that install optional dependencies."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import sfumato
from sfumato.foundation import installation
from sfumato.foundation.installation import hint_for_origin, install_hint, package_version

PACKAGE = Path(sfumato.__file__).parent
WHEEL = "file:///home/ann/sfumato-0.1-py3-none-any.whl"
ORIGINS = {
    "an index": (None, "pip install 'sfumato[server]'"),
    "a wheel": (
        {"url": WHEEL, "archive_info": {"hash": "sha256=00"}},
        f"pip install 'sfumato[server] @ {WHEEL}'",
    ),
    "a folder": (
        {"url": "file:///home/ann/sfumato", "dir_info": {}},
        "pip install '.[server]' in Sfumato's source folder",
    ),
    "an editable folder": (
        {"url": "file:///home/ann/sfumato", "dir_info": {"editable": True}},
        "pip install -e '.[server]' in Sfumato's source folder",
    ),
    "a repository": (
        {
            "url": "https://example.org/sfumato.git",
            "vcs_info": {"vcs": "git", "commit_id": "abc"},
        },
        "pip install 'sfumato[server] @ git+https://example.org/sfumato.git@abc'",
    ),
}


@pytest.mark.parametrize(("origin", "hint"), ORIGINS.values(), ids=ORIGINS)
def test_hint_follows_the_origin(origin, hint):
    text = None if origin is None else json.dumps(origin)
    assert hint_for_origin(text, "server") == hint


@pytest.mark.parametrize(("origin", "hint"), ORIGINS.values(), ids=ORIGINS)
def test_hint_of_an_installed_package(tmp_path, origin, hint):
    """Run a copy of the package next to the metadata that pip writes."""
    site = tmp_path / "site"
    for name in ("errors.py", "__init__.py", "foundation"):
        source = PACKAGE / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        (site / "sfumato").mkdir(parents=True, exist_ok=True)
        copy(source, site / "sfumato" / name)
    metadata = site / "sfumato-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sfumato\nVersion: 0.1\n")
    if origin is not None:
        (metadata / "direct_url.json").write_text(json.dumps(origin))
    program = (
        "from sfumato.foundation.installation import install_hint\n"
        "print(install_hint('server'), end='')"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert result.stdout == hint


def test_hint_in_a_source_folder():
    assert install_hint("charts") == "pip install -e '.[charts]' in Sfumato's source folder"


def test_a_folder_that_is_not_installed_has_no_version(monkeypatch):
    def find_nothing(package):
        raise PackageNotFoundError(package)

    assert sfumato.__version__ == package_version()
    monkeypatch.setattr(installation, "version", find_nothing)
    assert sfumato.__version__ == "unknown"
