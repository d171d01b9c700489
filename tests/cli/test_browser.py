"""Pages that open in a web browser."""

import re
import stat
import sys
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from sfumato.cli.browser import secret_redirect
from support.command import run_process

PAGES = {
    "estimate": ("estimate", "lunch.toml", "reports.csv", "--html", "page.html", "--open"),
    "plan": ("plan", "lunch.toml", "--people", "1000", "--html", "page.html", "--open"),
    "design": ("design", "matrix.csv", "--html", "page.html", "--open"),
    "label": ("label", "lunch.toml", "-o", "page.html", "--open"),
}


@pytest.fixture
def inputs(folder, call):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "reports.csv")
    (folder / "matrix.csv").write_text("a,b\n0,1\n2,0\n")
    return folder


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES)
def test_page_opens_in_the_browser(inputs, monkeypatch, words):
    script = inputs / "browser"
    script.write_text(f"#!{sys.executable}\nimport sys\nopen('url', 'w').write(sys.argv[1])\n")
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    assert run_process(*words).returncode == 0
    assert (inputs / "url").read_text() == (inputs / "page.html").resolve().as_uri()


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES)
def test_missing_browser_is_no_failure(inputs, monkeypatch, words):
    monkeypatch.setenv("BROWSER", "/absent/browser %s")
    monkeypatch.setenv("PATH", "/absent")  # webbrowser also looks for browsers it knows
    result = run_process(*words)
    assert result.returncode == 0
    assert "No web browser could be started. Open page.html yourself." in result.stderr.decode()
    assert (inputs / "page.html").exists()


@pytest.mark.parametrize("name", ["estimate", "plan", "design"])
def test_open_requires_a_page(inputs, error_from, name):
    words = [word for word in PAGES[name] if word not in ("--html", "page.html")]
    assert "--open requires --html" in error_from(*words)


ADDRESS = "http://127.0.0.1:8000/#token=s3cret&x=<\"'>"


def test_a_redirect_hides_its_address_from_other_people():
    with secret_redirect(ADDRESS) as url:
        assert "s3cret" not in url
        page = Path(url2pathname(urlsplit(url).path))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        refresh = re.search(r'content="0; url=([^"]*)"', page.read_text("utf-8"))
        assert unescape(refresh[1]) == ADDRESS
        assert '<meta name="referrer" content="no-referrer">' in page.read_text("utf-8")
    assert not page.parent.exists()


def test_a_redirect_is_gone_after_an_error():
    with pytest.raises(KeyboardInterrupt), secret_redirect(ADDRESS) as url:
        page = Path(url2pathname(urlsplit(url).path))
        raise KeyboardInterrupt
    assert not page.parent.exists()
