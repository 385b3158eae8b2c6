"""The rule by which a name leads to pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.graph.naming import Candidate, NameKind, choose, key_of, page_names, slug_names

WORDS = st.text(max_size=12)
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        page=st.integers(1, 4),
        kind=st.sampled_from(NameKind),
        name=st.sampled_from(["atlas", "Atlas", "p/atlas"]),
        folder=st.sampled_from(["", "p", "q"]),
        private=st.booleans(),
    ),
    max_size=6,
)


@given(name=WORDS)
def test_a_key_is_its_own_key(name: str) -> None:
    assert key_of(key_of(name)) == key_of(name)


@given(name=WORDS)
def test_upper_and_lower_case_have_one_key(name: str) -> None:
    assert key_of(name.casefold()) == key_of(name)


def test_titles_and_slugs_meet_in_one_key() -> None:
    assert key_of("Ana Example") == key_of("ana-example") == key_of("ＡＮＡ　example.md") == "ana-example"
    assert key_of("星河 数据") == key_of("星河-数据")
    assert key_of("C++") != key_of("C")


@given(candidates=CANDIDATES, name=st.sampled_from(["atlas", "p/atlas"]), titled=st.booleans(), data=st.data())
def test_leaving_out_a_page_that_was_not_chosen_never_changes_the_choice(
    candidates: list[Candidate[int]], name: str, titled: bool, data: st.DataObject
) -> None:
    """Stores keep one target for who sees all pages, and another only where it differs, because of this."""
    chosen = choose(candidates, name=name, titled=titled, folder="p")
    if len(chosen) != 1:
        return
    others = sorted({candidate.page for candidate in candidates} - {chosen[0].page})
    hidden = data.draw(st.sets(st.sampled_from(others))) if others else set()

    left = choose([c for c in candidates if c.page not in hidden], name=name, titled=titled, folder="p")

    assert [candidate.page for candidate in left] == [chosen[0].page]


@given(candidates=CANDIDATES, titled=st.booleans())
def test_a_page_is_chosen_once(candidates: list[Candidate[int]], titled: bool) -> None:
    chosen = [candidate.page for candidate in choose(candidates, name="x", titled=titled, folder=None)]

    assert len(chosen) == len(set(chosen))


def test_a_slug_names_its_page_whole_and_by_its_last_part() -> None:
    assert slug_names("people/ana", redirect=False) == [(NameKind.SLUG, "people/ana"), (NameKind.SLUG_TAIL, "ana")]
    assert slug_names("ana", redirect=True) == [(NameKind.REDIRECT, "ana")]


def test_a_page_has_each_of_its_names_once() -> None:
    names = page_names("Ana", ["ana", "ANA", "Nick", ""])

    assert names == [(NameKind.TITLE, "ana", "Ana"), (NameKind.ALIAS, "ana", "ana"), (NameKind.ALIAS, "nick", "Nick")]
