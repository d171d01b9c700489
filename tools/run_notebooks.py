"""Run the notebooks of the documentation, and keep their outputs.

    .venv/bin/python -m tools.run_notebooks docs/notebooks/first_survey.ipynb

Run it again when a cell or what a cell prints changes. A test compares the outputs. The last plot
becomes a picture with the notebook's name, for the documentation.
"""

import base64
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


def last_plot(notebook: Any) -> bytes | None:
    """Return the last PNG picture among the outputs, if there is one."""
    plots = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            plots.append(output.get("data", {}).get("image/png"))
    plots = [plot for plot in plots if plot is not None]
    return base64.b64decode(plots[-1]) if plots else None


def main(paths: list[str]) -> None:
    for name in paths:
        path = Path(name)
        notebook = run_notebook(path)
        nbformat.write(notebook, path)
        plot = last_plot(notebook)
        if plot is not None:
            path.with_suffix(".png").write_bytes(plot)
        print(f"Wrote {path}.")


if __name__ == "__main__":
    main(sys.argv[1:])
