"""The virtual environment for all measurements: this package, and its peers with their pins."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from case import OURS, PeerCase

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PINS = (ROOT / "constraints.txt", HERE / "requirements.txt")

PACKAGES = {
    OURS: ("--editable", str(ROOT)),
    "pure-ldp": ("pure-ldp", "scikit-learn", "statsmodels"),
    "multi-freq-ldpy": ("multi-freq-ldpy",),
    "OpenDP": ("opendp",),
}

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1"
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "RAYON")
}

TIMEOUT = 1800  # seconds per case


@dataclass
class Environment:
    """A virtual environment. ``missing``: why each missing library did not install."""

    folder: Path
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def prepare(self) -> None:
        """Create and install what is missing. Keep libraries with the same pins."""
        marker = self.folder / "made.ready"
        if not marker.exists() or marker.read_text(encoding="utf-8") != sys.version:
            print(f"creating an environment in {self.folder}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
            marker.write_text(sys.version, encoding="utf-8")
        for library, packages in PACKAGES.items():
            self._install(library, packages)

    def _install(self, library: str, packages: tuple[str, ...]) -> None:
        # One by one, so that the others are installed even if one fails.
        ready = self.folder / f"{library}.ready"
        pins = self._pins()
        if ready.exists() and ready.read_text(encoding="utf-8") == pins:
            return
        print(f"installing {library}", file=sys.stderr, flush=True)
        constraints = [word for path in PINS for word in ("--constraint", str(path))]
        process = self._run(
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *constraints,
            *packages,
        )
        if process.returncode == 0:
            ready.write_text(pins, encoding="utf-8")
        else:
            self.missing[library] = f"does not install: {last_line(process.stderr)}"

    def _pins(self) -> str:
        return "".join(
            path.read_text(encoding="utf-8") for path in (*PINS, ROOT / "pyproject.toml")
        )

    def run_case(self, script: Path, case: PeerCase) -> dict[str, Any]:
        """Return what the script prints for the case, or ``{"error": why}``."""
        if case.library in self.missing:
            return {"error": self.missing[case.library]}
        try:
            process = self._run(str(script), json.dumps(asdict(case)), timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {TIMEOUT} s"}
        if process.returncode:
            reason = last_line(process.stderr) or f"exit code {process.returncode}"
            return {"error": f"does not run: {reason}"}
        answer: dict[str, Any] = json.loads(process.stdout)
        return answer

    def versions(self) -> dict[str, str]:
        packages = json.loads(
            self._run("-m", "pip", "--disable-pip-version-check", "list", "--format=json").stdout
        )
        return {package["name"]: package["version"] for package in packages}

    def _run(self, *words: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *words],
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def last_line(text: str) -> str:
    """Return the last line that is not empty: Python and pip name the error there."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
