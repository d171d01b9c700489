"""The documentation in a real browser: accessible, and as wide as its window."""

import itertools
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.browser import serious_violations
from support.paths import ROOT

pytest.importorskip("sphinx")

PAGES = [
    "index.html",
    "start.html",
    "your_own_table.html",
    "playground/index.html",
    "gallery.html",
    "paper.html",
    "reference.html",
]
MAX_REPEATS = 4
REMOVE_REPEATS = """(limit) => {
  const groups = ["dl.py", "div.highlight"].map((kind) => [...document.querySelectorAll(kind)]);
  for (const body of document.querySelectorAll("tbody")) groups.push([...body.rows]);
  for (const group of groups) group.slice(limit).forEach((item) => item.remove());
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Return the folder of the pages: those that `make docs` built, or else new ones."""
    built = ROOT / "docs" / "_build" / "html"
    if (built / "index.html").exists():
        return built
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def address(pages):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=pages)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def open_page(browser, address, name):
    """Open a page, and keep few entries, rows and examples that are alike: axe looks at each."""
    page = browser.new_page(viewport={"width": 390, "height": 900}, bypass_csp=True)
    page.goto(address + name)
    if name == "playground/index.html":
        page.locator("#seen:not(.stale)").wait_for()
    theme_log = "[PST]: "
    assert [text for text in page.complaints if not text.startswith(theme_log)] == []
    page.evaluate(REMOVE_REPEATS, MAX_REPEATS)
    page.add_style_tag(content="* { transition: none !important; }")
    return page


def show(page, name, width, scheme):
    """Give a page a width and a scheme, and wait until it has them."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    if name != "playground/index.html":
        page.locator(f"html[data-theme={scheme}]").wait_for()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_and_fits(browser, address, name):
    page = open_page(browser, address, name)
    for width, scheme in itertools.product((390, 1400), ("light", "dark")):
        show(page, name, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert serious_violations(page) == [], (width, scheme)


@pytest.mark.parametrize("width", [390, 1400])
def test_first_picture_can_be_read(browser, address, width):
    page = open_page(browser, address, "index.html")
    page.set_viewport_size({"width": width, "height": 900})
    (picture,) = [image for image in page.locator("article img").all() if image.is_visible()]
    # Labels are 22 pixels high in the file.
    assert picture.evaluate("(image) => 22 * image.width / image.naturalWidth") > 9
    assert "of which clinic and bar are sensitive" in picture.get_attribute("alt")


@pytest.mark.slow
def test_all_other_pages_are_accessible_and_fit(browser, address, pages):
    names = {str(path.relative_to(pages)) for path in pages.rglob("*.html")}
    partial_pages = {name for name in names if name.startswith("_")}
    faults = []
    for name in sorted(names - partial_pages - set(PAGES)):
        page = open_page(browser, address, name)
        for width, scheme in ((390, "light"), (1400, "dark")):
            show(page, name, width, scheme)
            if page.evaluate("document.documentElement.scrollWidth") > width:
                faults.append((name, width, "too wide"))
            faults += [(name, scheme, fault) for fault in serious_violations(page)]
        page.close()
    assert faults == []


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("document.querySelector('article p').style.color = '#999'", "color-contrast"),
        ("document.querySelector('article img').removeAttribute('alt')", "image-alt"),
        ("document.documentElement.removeAttribute('lang')", "html-has-lang"),
    ],
)
def test_fault_is_detected(browser, address, fault, name):
    page = open_page(browser, address, "gallery.html")
    show(page, "gallery.html", 390, "light")
    page.evaluate(fault)
    assert [violation for violation, _ in serious_violations(page)] == [name]


def test_page_that_is_too_wide_is_detected(browser, address):
    page = open_page(browser, address, "gallery.html")
    page.evaluate("document.body.style.minWidth = '2000px'")
    assert page.evaluate("document.documentElement.scrollWidth > innerWidth")
