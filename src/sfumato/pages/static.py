"""What the aggregator's pages load: scripts and styles of the package, the JavaScript client, the drawing library."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from sfumato.errors import MissingExtra
from sfumato.pages.report.figures import plotly_source

__all__ = ["static_files"]

_SHARED = ("report.css", "figures.js", "rows.js")  # of the report page, shared with the dashboard
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """By path under ``static/``: the content, and its media type."""
    own = files("sfumato.pages")
    found = {name: own.joinpath("report", name) for name in _SHARED}
    for path, page in (("try", "try_page"), ("dashboard", "dashboard")):
        for file in own.joinpath(page).iterdir():
            if file.name.endswith((".css", ".js")):
                found[f"{path}/{file.name}"] = file
    client = _client_folder()
    for folder, path in ((client, "client"), (client.joinpath("modules"), "client/modules")):
        found |= {
            f"{path}/{file.name}": file for file in folder.iterdir() if file.name.endswith(".js")
        }
    read = {
        path: (file.read_bytes(), _KINDS[path.rpartition(".")[2]]) for path, file in found.items()
    }
    return {**read, "plotly.js": (plotly_source().encode("utf-8"), _KINDS["js"])}


def _client_folder() -> Traversable:
    """The JavaScript client: inside an installed package, or beside the sources."""
    installed = files("sfumato.pages").joinpath("javascript")
    if installed.is_dir():
        return installed
    beside = Path(__file__).parents[3] / "clients" / "javascript" / "src"
    if beside.is_dir():
        return beside
    raise MissingExtra(
        "the JavaScript client did not come with this installation. Install Sfumato again."
    )
