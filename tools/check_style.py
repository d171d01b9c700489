"""Enforce style rules that ruff lacks: `python tools/check_style.py` (part of `make lint`).

- One statement per line. Parallel assignment is only for swaps.
- The name of a function or variable must not begin with a past participle: `counts`, not `counted`.
- Some phrases are unidiomatic in technical English and must be reworded.
- Each public class name is used only once.

Tests are checked only for the first and the third rule. Exceptions are listed in this file, each
with its reason.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/sfumato", "benchmarks", "examples", "experiments", "tools")
TESTS = "tests"

# The standalone checker repeats names from the package on purpose; only the format changes it.
# The names of bad surveys are part of the test vectors, whose bytes must not change.
SKIPPED_FILES = {
    "tools/check_certificate.py",
    "tools/check_style.py",
    "tools/make_vectors/bad_surveys.py",
}

PARTICIPLE = re.compile(
    r"_*(?!(?:embed|feed|need|seed|shed|speed|bed|red|id|shared)(?:_|$))"
    r"(?:[a-z]+ed|told|made|given|taken|found|held|kept|sent|drawn|written|brought|thrown|known"
    r"|seen|shown|spent)(?:_|$)"
)
# Names that describe what they return, or are technical terms.
ALLOWED_FUNCTIONS = {
    "resolved": "a resolved survey is the file with every integer of the mechanism",
    "changed": "the labels that changed between two estimates",
    "keyed_reports": "reports under keys, the name in the Spark engine's public interface",
    "observed_shares": "shares that a tally shows without noise",
    "promised_epsilon": "the promised ε in a certificate",
    "protected_groups": "the groups that have a promise",
    "raised": "the number of raised outputs, the term in the client specification",
    "realised": "the realised ε of the tightest case",
    "realised_epsilon": "the realised ε in a certificate",
    "spent": "the amount spent from a ledger, the same word in both clients",
    "unbiased": "the unbiased estimate",
    "unprotected_symbols": "the symbols without a promise",
    "weighted_total": "a weighted sum",
}
BANNED_VARIABLES = {"found", "told", "made", "held", "asked", "counted"}
BANNED_PHRASES = re.compile(
    r"\b([Ss]o many|[Ww]hoever|[Aa]new|is none|cannot be meant|[Bb]eside)\b"
)


def main() -> int:
    """Print all violations. Return 1 if there are any, and 0 otherwise."""
    violations = list(find_violations())
    for violation in sorted(violations):
        print(violation)
    return 1 if violations else 0


def find_violations() -> Iterator[str]:
    """Yield every violation in the repository as `path:line: message`."""
    classes: dict[str, list[str]] = defaultdict(list)
    for path in source_files():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        yield from check_text(name, text)
        for node in ast.walk(ast.parse(text)):
            for violation in check_name(node):
                yield f"{name}:{violation}"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(name)
    for class_name, paths in classes.items():
        if len(paths) > 1:
            yield f"{paths[0]}: class {class_name} is also defined in {', '.join(paths[1:])}"
    for path in test_files():
        yield from check_text(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def source_files() -> Iterator[Path]:
    """Yield the Python files to which all rules apply."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.relative_to(ROOT).as_posix() not in SKIPPED_FILES:
                yield path


def test_files() -> Iterator[Path]:
    """Yield the Python files in the tests folder."""
    for path in sorted((ROOT / TESTS).rglob("*.py")):
        if "node_modules" not in path.parts:
            yield path


def check_text(name: str, text: str) -> Iterator[str]:
    """Yield the parallel assignments and banned phrases in a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and is_parallel(node):
            yield f"{name}:{node.lineno}: assign one value per line"
    for line_number, line in enumerate(text.splitlines(), 1):
        match = BANNED_PHRASES.search(line)
        if match:
            yield f"{name}:{line_number}: reword {match.group()!r}"


def check_name(node: ast.AST) -> Iterator[str]:
    """Yield the violations in the name that a node defines, as `line: message`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
        yield f"{node.lineno}: name {node.name}() after what it does or returns"
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
        return
    if node.id in BANNED_VARIABLES:
        yield f"{node.lineno}: name the variable {node.id!r} after its content"


def is_parallel(node: ast.Assign) -> bool:
    """Return whether an assignment sets several independent values, which a swap does not."""
    targets = node.targets[0]
    if not isinstance(targets, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    stored = {ast.dump(target).replace("Store()", "Load()") for target in targets.elts}
    loaded = {ast.dump(value) for value in node.value.elts}
    return not stored & loaded


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a past participle."""
    return name not in ALLOWED_FUNCTIONS and PARTICIPLE.match(name) is not None


if __name__ == "__main__":
    sys.exit(main())
