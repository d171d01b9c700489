"""The files that the aggregator's pages load: styles, scripts and the JavaScript client."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from sfumato.errors import MissingExtra
from sfumato.pages.markup import page_style

_SHARED_FILES = {  # files that several pages load, keyed by their path under static/
    "rows.js": "report/rows.js",
    "maps.js": "report/maps.js",
}
_MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return the content and media type of each file, keyed by its path under ``static/``."""
    pages = files("sfumato.pages")
    client = _client_folder()
    folders = {
        "try": pages.joinpath("try_it"),
        "dashboard": pages.joinpath("dashboard"),
        "client": client,
        "client/modules": client.joinpath("modules"),
    }
    contents = {"report.css": page_style().encode("utf-8")}
    for path, source in _SHARED_FILES.items():
        contents[path] = pages.joinpath(source).read_bytes()
    for prefix, folder in folders.items():
        for file in folder.iterdir():
            if Path(file.name).suffix in _MEDIA_TYPES:
                contents[f"{prefix}/{file.name}"] = file.read_bytes()
    return {path: (content, _MEDIA_TYPES[Path(path).suffix]) for path, content in contents.items()}


def _client_folder() -> Traversable:
    """Find the JavaScript client in the installed package or in the repository."""
    installed_folder = files("sfumato.pages").joinpath("javascript")
    if installed_folder.is_dir():
        return installed_folder
    source_folder = Path(__file__).parents[3] / "clients" / "javascript" / "src"
    if source_folder.is_dir():
        return source_folder
    raise MissingExtra("the JavaScript client is missing. Reinstall Sfumato.")
