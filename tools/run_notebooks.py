"""Run the notebooks of the documentation, and keep their outputs.

    .venv/bin/python -m tools.run_notebooks docs/notebooks/first_survey.ipynb

Run it again when a cell or what a cell prints changes. A test compares the outputs. The last chart
becomes a picture with the notebook's name, for the documentation.
"""

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TIMEOUT = 120  # seconds for one cell


def run_notebook(path: Path) -> Any:
    """Return the notebook with the outputs of a fresh run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        resources={"metadata": {"path": path.parent}},
        extra_arguments=[
            "--log-level=40"
        ],  # the kernel warns that it talks in clear, to this process
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
    notebook.metadata["language_info"] = {"name": "python"}  # not the version of this machine
    return notebook


def last_chart(notebook: Any) -> str | None:
    """Return the last chart among the outputs, if there is one."""
    charts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            html = output.get("data", {}).get("text/html", "")
            charts += re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    return charts[-1] if charts else None


def main(paths: list[str]) -> None:
    for name in paths:
        path = Path(name)
        notebook = run_notebook(path)
        nbformat.write(notebook, path)
        chart = last_chart(notebook)
        if chart is not None:
            path.with_suffix(".svg").write_text(chart + "\n", encoding="utf-8")
        print(f"Wrote {path}.")


if __name__ == "__main__":
    main(sys.argv[1:])
