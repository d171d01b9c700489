"""Sphinx settings. Nothing on the pages is fetched from elsewhere when they are read."""

import re
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from sfumato.codes import HadamardCode
from sfumato.foundation import arrays
from sfumato.foundation.canonical import Json

project = "Sfumato"
author = "the Sfumato contributors"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "playground"]
templates_path = ["_templates"]
myst_heading_anchors = 3

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "pydata_sphinx_theme"
html_title = "Sfumato"
html_static_path = ["_static"]
html_css_files = ["sfumato.css"]
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_show_sourcelink = False
html_sidebars = {"**": ["all-pages.html"]}
html_context = {"default_mode": "auto"}  # without it, the theme logs an error on each page
html_theme_options = {
    "logo": {"text": "Sfumato", "alt_text": "Sfumato"},
    "navbar_center": [],  # all pages stand in the sidebar, under their captions
    "show_prev_next": False,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Python writes type aliases out in full; signatures read better with the names that the code uses.
ALIASES = {
    "Json": Json,
    "ArrayLike": ArrayLike,
    "Floats": arrays.Floats,
    "Booleans": arrays.Booleans,
    "Reports": arrays.Reports,
    "Words": arrays.Words,
    "Integers": NDArray[np.int64],
}
NAMES = {stringify_annotation(alias, "smart"): name for name, alias in ALIASES.items()}
NAMES[repr(HadamardCode)] = "HadamardCode"


def with_names(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, *texts: str | None
) -> tuple:
    """Return arguments and result of a signature, with aliases in place of long types."""
    return tuple(text and shortened(text) for text in texts)


def shortened(text: str) -> str:
    for long, name in [
        *NAMES.items(),
        *NAMES.items(),
    ]:  # twice: Json stands for something that holds Json
        text = text.replace(long, name)
    return text


# Sphinx writes the parameters of a long signature as a list of definitions without terms, which
# screen readers cannot read.
LISTED_PARAMETERS = re.compile(r"<dl>\s*((?:<dd>.*?</dd>\s*)+)</dl>", re.DOTALL)


def relabel_parameters(app: Sphinx, problem: Exception | None) -> None:
    """Write the parameters of long signatures as plain lines."""
    if problem is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).glob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(LISTED_PARAMETERS.sub(as_lines, text), encoding="utf-8")


def as_lines(match: re.Match[str]) -> str:
    lines = match[1].replace("<dd>", "<span>").replace("</dd>", "</span>")
    return f'<span class="parameters">{lines}</span>'


HERE = Path(__file__).parent
CLIENT = HERE.parent / "clients" / "javascript" / "src"


def lay_out_playground(app: Sphinx, problem: Exception | None) -> None:
    """Copy the playground and the client that it runs, so that the tree has one client."""
    if problem is None and app.builder.format == "html":
        target = Path(app.outdir) / "playground"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(HERE / "playground", target)
        shutil.copytree(CLIENT, target / "client")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", with_names)
    app.connect("build-finished", relabel_parameters)
    app.connect("build-finished", lay_out_playground)
