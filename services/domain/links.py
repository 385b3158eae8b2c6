"""Placeholder replaced in the next change."""

from __future__ import annotations

from services.domain.frontmatter import Frontmatter
from services.domain.inference import About
from services.domain.markdown import Layout
from services.domain.page import Finding, LinkReference


def extract_links(
    *, source: str, slug: str, path: str, about: About, front: Frontmatter, layout: Layout
) -> tuple[tuple[LinkReference, ...], tuple[Finding, ...]]:
    """No links yet."""
    return (), ()
