"""The front door of the pages: every name resolves, and one page does not load the others."""

import subprocess
import sys

import pytest

from sfumato import pages


@pytest.mark.parametrize("name", dir(pages))
def test_names_resolve(name):
    assert getattr(pages, name) is not None


def test_unknown_names_raise_attribute_errors():
    assert not hasattr(pages, "nonsense")


def test_a_label_loads_neither_other_pages_nor_drawing_libraries():
    program = (
        "import sys; from sfumato.pages import label_page\n"
        "print(*(name for name in sys.modules if name.startswith("
        "('sfumato.pages.report', 'sfumato.pages.design', 'resvg_py', 'matplotlib'))))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
