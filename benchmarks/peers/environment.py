"""The virtual environment in which everybody is measured: this package, and its peers with the pins they need."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from case import OURS, Case

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

LONGEST = 1800  # seconds that a case may take


@dataclass
class Environment:
    """A folder with an interpreter; ``missing`` says of each library that did not install, why."""

    folder: Path
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def prepare(self) -> None:
        """Make what is not there yet. What was installed with the same pins is left as it is."""
        made = self.folder / "made.ready"
        if not made.exists() or made.read_text(encoding="utf-8") != sys.version:
            print(f"making an environment in {self.folder}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
            made.write_text(sys.version, encoding="utf-8")
        for library, packages in PACKAGES.items():
            self._install(library, packages)

    def _install(self, library: str, packages: tuple[str, ...]) -> None:
        # One by one, so that a peer that cannot be installed does not take the others with it.
        ready, pins = self.folder / f"{library}.ready", self._pins()
        if ready.exists() and ready.read_text(encoding="utf-8") == pins:
            return
        print(f"installing {library}", file=sys.stderr, flush=True)
        constraints = [word for path in PINS for word in ("--constraint", str(path))]
        done = self._run(
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *constraints,
            *packages,
        )
        if done.returncode == 0:
            ready.write_text(pins, encoding="utf-8")
        else:
            self.missing[library] = f"does not install: {last_line(done.stderr)}"

    def _pins(self) -> str:
        return "".join(
            path.read_text(encoding="utf-8") for path in (*PINS, ROOT / "pyproject.toml")
        )

    def answer_of(self, script: Path, case: Case) -> dict[str, Any]:
        """What the script says of the case, or ``{"error": why}``."""
        if case.library in self.missing:
            return {"error": self.missing[case.library]}
        try:
            done = self._run(str(script), json.dumps(asdict(case)), timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {LONGEST} s"}
        if done.returncode:
            return {
                "error": f"does not run: {last_line(done.stderr) or f'exit code {done.returncode}'}"
            }
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def versions(self) -> dict[str, str]:
        listed = json.loads(
            self._run("-m", "pip", "--disable-pip-version-check", "list", "--format=json").stdout
        )
        return {package["name"]: package["version"] for package in listed}

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
    """Where Python and pip say what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
