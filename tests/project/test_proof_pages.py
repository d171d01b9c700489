"""Every mechanism has a proof page with the usual headings, linked from its docstring."""

import pytest

from support.mechanism_examples import every_mechanism_class
from support.paths import ROOT

PROOFS = ROOT / "docs" / "proofs"
HEADINGS = ["Precondition", "Channel", "Claim", "Argument", "Estimator", "Variance"]


@pytest.mark.parametrize(
    "mechanism", sorted(every_mechanism_class(), key=lambda cls: cls.kind), ids=lambda cls: cls.kind
)
def test_mechanism_links_to_its_proof_page(mechanism):
    page = PROOFS / f"{mechanism.kind}.md"
    assert page.is_file(), f"write {page.name}"
    headings = [
        line.removeprefix("## ").strip()
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert [heading for heading in headings if heading in HEADINGS] == HEADINGS
    assert f"docs/proofs/{mechanism.kind}.md" in (mechanism.__doc__ or "")


def test_every_page_has_a_mechanism():
    pages = {page.stem for page in PROOFS.glob("*.md")} - {"index"}
    assert pages == {cls.kind for cls in every_mechanism_class()}
