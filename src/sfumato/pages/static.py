"""The files that the aggregator's pages load: styles, scripts, the JavaScript client and plotly."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from sfumato.errors import MissingExtra
from sfumato.pages.charts import plotly_source

__all__ = ["static_files"]

_SHARED = {  # used by more than one page: path under static/, and file
    "report.css": "style.css",
    "figures.js": "report/figures.js",
    "rows.js": "report/rows.js",
}
_MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Map each path under ``static/`` to the file's content and media type."""
    pages = files("sfumato.pages")
    client = _client_folder()
    sources = {path: pages.joinpath(name) for path, name in _SHARED.items()}
    sources |= _scripts_and_styles("try", pages.joinpath("try_it"))
    sources |= _scripts_and_styles("dashboard", pages.joinpath("dashboard"))
    sources |= _scripts_and_styles("client", client)
    sources |= _scripts_and_styles("client/modules", client.joinpath("modules"))
    served = {}
    for path, file in sources.items():
        served[path] = (file.read_bytes(), _MEDIA_TYPES[Path(path).suffix])
    served["plotly.js"] = (plotly_source().encode("utf-8"), _MEDIA_TYPES[".js"])
    return served


def _scripts_and_styles(prefix: str, folder: Traversable) -> dict[str, Traversable]:
    """Map ``prefix/name`` to each script and style in a folder."""
    sources = {}
    for file in folder.iterdir():
        if Path(file.name).suffix in _MEDIA_TYPES:
            sources[f"{prefix}/{file.name}"] = file
    return sources


def _client_folder() -> Traversable:
    """Find the JavaScript client: in the installed package, or in the repository."""
    installed = files("sfumato.pages").joinpath("javascript")
    if installed.is_dir():
        return installed
    repository = Path(__file__).parents[3] / "clients" / "javascript" / "src"
    if repository.is_dir():
        return repository
    raise MissingExtra("this installation lacks the JavaScript client. Reinstall Sfumato.")
