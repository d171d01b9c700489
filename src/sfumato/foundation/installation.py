"""How Sfumato was installed, so that hints about optional dependencies work."""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

_PACKAGE = "sfumato"


def install_hint(extra: str) -> str:
    """Return the command that installs the optional dependencies named ``extra``.

    Sfumato may not be on a package index, so the command names the folder, wheel or repository that
    Sfumato was installed from, if this is known.
    """
    if _is_source_folder(Path(__file__).parents[3]):
        return _hint_for_folder(extra, "-e ")
    try:
        direct_url = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        direct_url = None
    return hint_for_origin(direct_url, extra)


def package_version() -> str:
    """Return Sfumato's version, or "unknown" in a source folder that is not installed."""
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def hint_for_origin(direct_url: str | None, extra: str) -> str:
    """Return the install command, given the contents of pip's ``direct_url.json`` (PEP 610).

    >>> hint_for_origin(None, "server")
    "pip install 'sfumato[server]'"
    >>> hint_for_origin('{"url": "file:///w/s-1-any.whl", "archive_info": {}}', "server")
    "pip install 'sfumato[server] @ file:///w/s-1-any.whl'"
    """
    origin = json.loads(direct_url) if direct_url else {}
    url = origin.get("url")
    if url is None:
        return f"pip install '{_PACKAGE}[{extra}]'"
    if "dir_info" in origin:
        editable_option = "-e " if origin["dir_info"].get("editable") else ""
        return _hint_for_folder(extra, editable_option)
    revision = origin.get("vcs_info")
    if revision is not None:
        url = f"{revision['vcs']}+{url}@{revision['commit_id']}"
    return f"pip install {shlex.quote(f'{_PACKAGE}[{extra}] @ {url}')}"


def _hint_for_folder(extra: str, editable_option: str) -> str:
    # Do not name the folder: hints also appear on pages that people share.
    return f"pip install {editable_option}'.[{extra}]' in Sfumato's source folder"


def _is_source_folder(folder: Path) -> bool:
    has_project_file = (folder / "pyproject.toml").is_file()
    return has_project_file and (folder / "src" / _PACKAGE).is_dir()
