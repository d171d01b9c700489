"""Check what ruff cannot: `python tools/check_style.py` (part of `make lint`).

- One statement per line: an assignment of several values at once must be a swap.
- Functions are named by verbs or nouns, not by past participles, and so are variables: `counts`,
  not `counted`.
- Some words are foreign to English technical prose: say it another way.
- Each public class name has one meaning.

Tests are checked for the first and the third rule. Exceptions are listed in this file, each with
its reason.
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

# The lone checker repeats the package's words on purpose, and changes only with the format.
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
# Names that are adjectives of what they return, or words of the trade.
ALLOWED_FUNCTIONS = {
    "resolved": "a resolved survey is the file with every integer of the mechanism",
    "changed": "the labels that changed between two estimates",
    "keyed_reports": "reports under keys, the name in the Spark engine's public interface",
    "observed_shares": "shares that a tally shows without noise",
    "promised_epsilon": "the ε that a certificate names as promised",
    "raised": "how many outputs a code raises for a symbol, the word of the client specification",
    "realised": "the ε that the odds at a place amount to",
    "realised_epsilon": "the ε that a certificate names as realised",
    "spent": "what a ledger has spent, the same word in both clients",
    "unbiased": "the unbiased estimate of statistics",
    "unprotected": "the symbols without a promise, the same word in both clients",
    "weighted_total": "a weighted sum",
}
FOREIGN_NAMES = {"found", "told", "made", "held", "asked", "counted"}
FOREIGN_WORDS = re.compile(r"\b([Ss]o many|[Ww]hoever|[Aa]new|is none|cannot be meant|[Bb]eside)\b")


def main() -> int:
    """Print every fault, and return 1 if there is one."""
    faults = list(find_faults())
    for fault in sorted(faults):
        print(fault)
    return 1 if faults else 0


def find_faults() -> Iterator[str]:
    """Yield every fault of the tree as `path:line: what is wrong`."""
    classes: dict[str, list[str]] = defaultdict(list)
    for path in source_files():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        yield from faults_of_text(name, text)
        for node in ast.walk(ast.parse(text)):
            for fault in faults_of_name(node):
                yield f"{name}:{fault}"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(name)
    for class_name, places in classes.items():
        if len(places) > 1:
            yield f"{places[0]}: class {class_name} is also in {', '.join(places[1:])}"
    for path in files_of_tests():
        yield from faults_of_text(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def source_files() -> Iterator[Path]:
    """Yield the Python files to check by every rule."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.relative_to(ROOT).as_posix() not in SKIPPED_FILES:
                yield path


def files_of_tests() -> Iterator[Path]:
    """Yield the Python files of the tests."""
    for path in sorted((ROOT / TESTS).rglob("*.py")):
        if "node_modules" not in path.parts:
            yield path


def faults_of_text(name: str, text: str) -> Iterator[str]:
    """Yield the parallel assignments and foreign words in the text of a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and is_parallel(node):
            yield f"{name}:{node.lineno}: assign one value per line"
    for number, line in enumerate(text.splitlines(), 1):
        match = FOREIGN_WORDS.search(line)
        if match:
            yield f"{name}:{number}: say {match.group()!r} another way"


def faults_of_name(node: ast.AST) -> Iterator[str]:
    """Yield what is wrong with the name that a node defines, as `line: what is wrong`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
        yield f"{node.lineno}: name {node.name}() by a verb or by what it returns"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in FOREIGN_NAMES:
        yield f"{node.lineno}: name the variable {node.id!r} by what it is"


def is_parallel(node: ast.Assign) -> bool:
    """Whether an assignment packs several statements into one; a swap does not."""
    targets = node.targets[0]
    if not isinstance(targets, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    stored = {ast.dump(target).replace("Store()", "Load()") for target in targets.elts}
    loaded = {ast.dump(value) for value in node.value.elts}
    return not stored & loaded


def is_participle(name: str) -> bool:
    """Whether a function's name begins with a past participle."""
    return name not in ALLOWED_FUNCTIONS and PARTICIPLE.match(name) is not None


if __name__ == "__main__":
    sys.exit(main())
