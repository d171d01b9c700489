"""Open a page in the person's web browser. A browser that does not start is not an error."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import notify
from sfumato.errors import InvalidArgument

OpenPage = Annotated[bool, typer.Option("--open", help="Open the page in a web browser.")]


def require_page(path: str | None, *, opens_page: bool) -> None:
    """Reject --open without --html."""
    if opens_page and path is None:
        raise InvalidArgument("--open requires --html, the page to open.")


def open_page(path: str | os.PathLike[str]) -> None:
    """Open a file in a web browser. If that fails, say which file to open."""
    if not _open_url(Path(path).resolve().as_uri()):
        notify(f"No web browser could be started. Open {path} yourself.")


@contextmanager
def secret_redirect(url: str) -> Iterator[str]:
    """Yield the URL of a temporary file that redirects to ``url``; only its owner can read it.

    The command line of a browser is visible to everyone on the machine, so it must not contain a
    secret.
    """
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        page = Path(folder, "open.html")
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={escape(url)}"><title>Sfumato</title>',
            encoding="utf-8",
        )
        page.chmod(0o600)
        yield page.as_uri()


def open_in_background(url: str) -> None:
    """Open a URL without waiting for the browser."""
    threading.Thread(target=_open_url, args=(url,), daemon=True).start()


def _open_url(url: str) -> bool:
    """Open a URL in a web browser; return whether one was started."""
    import webbrowser

    try:
        return webbrowser.open(url)
    except Exception:  # noqa: BLE001 - the page exists, whatever happens to the browser
        return False
