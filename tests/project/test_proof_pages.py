"""Every mechanism carries its proof: a page with the same headings, linked from its docstring."""

import pytest

from support.mechanism_examples import every_mechanism_class
from support.paths import ROOT

PROOFS = ROOT / "docs" / "proofs"
HEADINGS = ["Precondition", "Channel", "Claim", "Argument", "Estimator", "Variance"]


@pytest.mark.parametrize(
    "mechanism", sorted(every_mechanism_class(), key=lambda cls: cls.kind), ids=lambda cls: cls.kind
)
def test_every_mechanism_has_a_proof_page_and_links_to_it(mechanism):
    page = PROOFS / f"{mechanism.kind}.md"
    assert page.is_file(), f"write {page.name}"
    found = [
        line.removeprefix("## ").strip()
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert [heading for heading in found if heading in HEADINGS] == HEADINGS
    assert f"docs/proofs/{mechanism.kind}.md" in (mechanism.__doc__ or "")


def test_no_page_is_left_without_its_mechanism():
    pages = {page.stem for page in PROOFS.glob("*.md")} - {"index"}
    assert pages == {cls.kind for cls in every_mechanism_class()}
