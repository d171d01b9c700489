"""The notebooks of the documentation run, and print what they show. Only numbers may differ."""

import re

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from support.paths import ROOT
from tools.run_notebooks import run_notebook

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

SIMPLE = {"cell_type": "code", "metadata": {}, "execution_count": None, "id": "a"}


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Keep the kernel's history and sockets out of the home folder."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")


def outputs_of(notebook):
    """Return what each cell shows: its texts without numbers, and the kinds of its pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[text for output in cell.outputs for text in texts_of(output)] for cell in cells]


def texts_of(output):
    if output.output_type == "stream":
        return [(output.name, without_numbers(output.text))]
    if output.output_type == "error":
        return [("error", output.ename)]
    return [
        (kind, without_numbers(content) if kind.startswith("text/") else "")
        for kind, content in sorted(output.data.items())
    ]


def without_numbers(text):
    """Replace numbers and hexadecimal digests; join what only spaces separate."""
    text = re.sub(r"\b[0-9a-f]{12,}\b", "#", text)
    text = re.sub(r"-?\d[\d,.]*(?:e-?\d+)?", "#", text)
    return " ".join(text.split())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_it_prints(path):
    stored = nbformat.read(path, as_version=4)
    assert outputs_of(run_notebook(path)) == outputs_of(stored), (
        f"run python -m tools.run_notebooks {path.relative_to(ROOT)}"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_outputs(path):
    stored = nbformat.read(path, as_version=4)
    assert any(outputs_of(stored))
    assert not [kind for texts in outputs_of(stored) for kind, _ in texts if kind == "error"]
    assert stored.metadata.language_info == {"name": "python"}


def write_notebook(path, source, *texts):
    outputs = [{"output_type": "stream", "name": "stdout", "text": text} for text in texts]
    cell = nbformat.from_dict({**SIMPLE, "source": source, "outputs": outputs})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def test_stale_outputs_are_detected(tmp_path):
    path = write_notebook(tmp_path / "a.ipynb", "print('12 reports')", "7 tallies\n")
    fresh = outputs_of(run_notebook(path))
    assert fresh == [[("stdout", "# reports")]]
    assert fresh != outputs_of(nbformat.read(path, as_version=4))


def test_cells_that_fail_are_detected(tmp_path):
    path = write_notebook(tmp_path / "a.ipynb", "1 / 0")
    with pytest.raises(CellExecutionError):
        run_notebook(path)
