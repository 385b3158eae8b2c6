"""What every graph promises about names: exact, whatever case and width; several are shown and none is picked."""

from __future__ import annotations

from services.graph.naming import NameKind
from services.graph.ports import GraphStore, NameQuestion, Viewer
from tests.contract.graph.pages import EVERYTHING, link, links_of, only, page, pid, redirect, targets_of


async def resolved(
    graph: GraphStore, name: str, source: str | None = "default", viewer: Viewer = EVERYTHING
) -> list[str]:
    (matches,) = await graph.resolve_names([NameQuestion(name, source)], viewer)
    return [match.page.slug for match in matches]


async def kind_of(graph: GraphStore, name: str) -> NameKind:
    ((match,),) = await graph.resolve_names([NameQuestion(name, "default")], EVERYTHING)
    return match.kind


async def test_a_page_is_found_by_slug_former_slug_title_alias_and_last_part(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("people/ana-example", page_id="ana", title="Ana Maria Example", aliases=["阿娜"]),
            redirect("persons/ana-e", "ana"),
        ]
    )

    assert await kind_of(graph, "people/ana-example") is NameKind.SLUG
    assert await kind_of(graph, "persons/ana-e") is NameKind.REDIRECT
    assert await kind_of(graph, "Ana Maria Example") is NameKind.TITLE
    assert await kind_of(graph, "阿娜") is NameKind.ALIAS
    assert await kind_of(graph, "ana-example") is NameKind.SLUG_TAIL
    assert await kind_of(graph, "ana-e") is NameKind.FORMER_TAIL


async def test_case_width_spaces_and_invisible_characters_make_no_other_name(graph: GraphStore) -> None:
    await graph.apply([page("people/ana-example", title="Ana  Example", aliases=["ＡＣＭＥ有限公司"])])

    spellings = ["ANA EXAMPLE", "ana\u200b example", "Ａｎａ　Ｅｘａｍｐｌｅ", "“Ana Example”", "People/Ana-Example"]
    for name in [*spellings, "ACME有限公司"]:
        assert await resolved(graph, name) == ["people/ana-example"], name


async def test_a_question_reaches_a_dated_page_without_its_date_and_a_link_does_not(graph: GraphStore) -> None:
    await graph.apply(
        [page("note", link("customs workshop")), page("meetings/2025-09-24-customs-workshop", title="In Rotterdam")]
    )

    assert await kind_of(graph, "customs workshop") is NameKind.UNDATED_TAIL
    assert await targets_of(graph, pid("note")) == ["[customs workshop]"]


async def test_an_exact_title_is_an_edge_and_a_near_one_is_none(graph: GraphStore) -> None:
    """BC-038."""
    await graph.apply([page("people/ana-example", title="Ana Example")])
    await graph.apply([page("note", link("Ana Example"), link("Ana Exampel"))])

    assert await targets_of(graph, pid("note")) == ["[Ana Exampel]", "people/ana-example"]


async def test_a_path_is_never_a_title(graph: GraphStore) -> None:
    await graph.apply([page("note", link("atlas", titled=False)), page("projects/atlas", title="Atlas")])

    assert await targets_of(graph, pid("note")) == ["[atlas]"]


async def test_a_bare_name_prefers_the_folder_of_the_page_that_writes_it(graph: GraphStore) -> None:
    """BC-037."""
    await graph.apply(
        [page("projects/note", link("atlas")), page("projects/atlas"), page("archive/atlas", title="Atlas")]
    )

    assert await targets_of(graph, pid("projects/note")) == ["projects/atlas"]


async def test_a_bare_name_that_fits_several_pages_elsewhere_shows_them_all_and_picks_none(graph: GraphStore) -> None:
    """BC-037."""
    await graph.apply([page("notes/n", link("atlas")), page("projects/atlas"), page("archive/atlas")])

    (shown,) = await links_of(graph, pid("notes/n"))

    assert shown.ambiguous
    assert shown.to_page.ghost
    assert [one.slug for one in shown.candidates] == ["archive/atlas", "projects/atlas"]
    assert await graph.count_backlinks([pid("archive/atlas"), pid("projects/atlas")], EVERYTHING) == [0, 0]


async def test_an_ambiguous_name_is_clear_again_when_one_page_is_left(graph: GraphStore) -> None:
    await graph.apply([page("notes/n", link("atlas")), page("projects/atlas"), page("archive/atlas", page_id="old")])

    await graph.apply([redirect("archive/atlas", "old"), page("archive/atlas-2024", page_id="old")])

    assert await targets_of(graph, pid("notes/n")) == ["projects/atlas"]


async def test_an_address_is_stronger_than_any_title(graph: GraphStore) -> None:
    await graph.apply([page("projects/note", link("atlas")), page("atlas"), page("projects/x", title="Atlas")])

    assert await targets_of(graph, pid("projects/note")) == ["atlas"]


async def test_a_name_is_looked_up_in_its_own_source_and_crosses_when_it_says_so(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("note", link("atlas"), link("atlas", "knows", source="team")),
            page("projects/atlas", source="team"),
        ]
    )

    assert await targets_of(graph, pid("note")) == ["projects/atlas", "[atlas]"]
    assert await resolved(graph, "atlas") == []
    assert await resolved(graph, "atlas", "team") == ["projects/atlas"]
    assert await resolved(graph, "atlas", None) == ["projects/atlas"]
    assert await resolved(graph, "atlas", None, only("default")) == []


async def test_the_folder_of_a_page_in_another_source_prefers_nothing(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("projects/note", link("atlas", source="team")),
            page("projects/atlas", source="team"),
            page("archive/atlas", source="team"),
        ]
    )

    (shown,) = await links_of(graph, pid("projects/note"))
    assert shown.ambiguous


async def test_a_page_that_is_renamed_loses_its_old_title_and_gains_the_new(graph: GraphStore) -> None:
    await graph.apply([page("p/x", title="Old Name", aliases=["Nick"])])
    await graph.apply([page("note", link("Old Name"), link("New Name"))])

    await graph.apply([page("p/x", title="New Name")])

    assert await targets_of(graph, pid("note")) == ["[Old Name]", "p/x"]
    assert await resolved(graph, "Nick") == []


async def test_slugs_that_differ_in_folding_alone_are_told_apart_by_their_spelling(graph: GraphStore) -> None:
    await graph.apply([page("straße"), page("strasse")])

    assert await resolved(graph, "straße") == ["straße"]
    assert await resolved(graph, "strasse") == ["strasse"]


async def test_a_name_of_only_invisible_characters_is_no_name(graph: GraphStore) -> None:
    await graph.apply([page("a", link("\u200b")), page("b", title="\u200b")])

    assert await targets_of(graph, pid("a")) == ["[\u200b]"]
    assert await resolved(graph, "\u200b") == []


async def test_at_most_twenty_pages_are_shown_for_one_name(graph: GraphStore) -> None:
    await graph.apply([page("note", link("readme")), *(page(f"p{number:02d}/readme") for number in range(40))])

    (shown,) = await links_of(graph, pid("note"))

    assert len(shown.candidates) == 20
    assert len(await resolved(graph, "readme")) == 20


async def test_parts_of_names_are_found_the_nearest_first(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("people/ana-ferro", title="Ana Ferro"),
            page("people/anabel", title="Anabel"),
            page("notes/banana", title="Banana"),
            page("notes/other", title="Other", aliases=["Ana"]),
        ]
    )

    found = await graph.search_names("ana", EVERYTHING, 10)

    assert [match.page.slug for match in found] == ["notes/other", "people/anabel", "people/ana-ferro", "notes/banana"]
    assert (found[0].kind, found[0].name) == (NameKind.ALIAS, "Ana")
    assert len(await graph.search_names("ana", EVERYTHING, 2)) == 2


async def test_names_nearly_as_asked_are_found(graph: GraphStore) -> None:
    await graph.apply([page("people/ana-example", title="Ana Example"), page("people/bo", title="Bo Sample")])

    found = await graph.search_names("Ana Exampel", EVERYTHING, 5)

    assert [match.page.slug for match in found] == ["people/ana-example"]


async def test_chinese_names_are_found_by_one_character_two_and_nearly(graph: GraphStore) -> None:
    names = ("人物/张三丰", "人物/李四", "公司/星河数据")
    await graph.apply([page(name, title=name.rpartition("/")[2]) for name in names])

    async def found(partial: str) -> list[str]:
        return [match.page.slug for match in await graph.search_names(partial, EVERYTHING, 5)]

    assert await found("张") == ["人物/张三丰"]
    assert await found("三丰") == ["人物/张三丰"]
    assert await found("张三风") == ["人物/张三丰"]
    assert await found("数据") == ["公司/星河数据"]
    assert await found("王") == []


async def test_a_part_of_any_characters_is_only_text(graph: GraphStore) -> None:
    await graph.apply([page("languages/c++", title='C++ "quoted" AND (x)')])

    for partial in ('"quoted"', "c++", "AND (x", "* OR NEAR(", "%", "_", "'", "\\", "🚀"):
        await graph.search_names(partial, EVERYTHING, 5)

    assert [match.page.slug for match in await graph.search_names("c++", EVERYTHING, 5)] == ["languages/c++"]


async def test_a_page_that_is_gone_or_renamed_is_not_found_by_what_it_was_called(graph: GraphStore) -> None:
    await graph.apply([page("p/x", title="Remarkable"), page("p/y", title="Noteworthy")])

    await graph.apply([page("p/x", title="Plain")])

    assert await graph.search_names("remark", EVERYTHING, 5) == []
    assert [match.page.slug for match in await graph.search_names("plain", EVERYTHING, 5)] == ["p/x"]
