"""Links that frontmatter makes: which fields name pages, and which way round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from services.domain.dates import typed_date
from services.domain.frontmatter import Frontmatter
from services.domain.inference import texts
from services.domain.link_targets import Target, wikilink_target
from services.domain.page import FrontmatterValue, LinkProvenance, LinkReference
from services.domain.relations import MENTIONS, FieldLink, Role, field_link

CONTEXT_CHARACTERS_MAX = 240

_WIKILINK = re.compile(r"\[\[([^\[\]\n]{1,512})\]\]")
_SEPARATOR = re.compile(r"[、；;]|[,，](?!\s*(?:Inc|LLC|Ltd|Jr|Sr|GmbH|Co)\b)")
_NO_NAME = re.compile(r"[\d\s.,:/%+-]*|[a-z][a-z0-9+.-]*://\S*|(?:none|n/a|unknown|tbd|无|未知|待定)", re.IGNORECASE)
_NAME_KEYS = ("name", "slug", "title", "page", "名称", "姓名")
_DETAIL_KEYS = ("role", "title", "amount", "round", "date", "职位", "角色")
_PLAIN_FIELDS = frozenset(
    {"title", "type", "tags", "tag", "aliases", "alias", "slug", "date", "visibility", "description"}
)


def field_links(front: Frontmatter, *, source: str, folder: str, role: Role) -> Iterator[LinkReference]:
    """The links of a page's frontmatter, in the order of its fields."""
    for key, value in front.values.items():
        if value is None or isinstance(value, bool):
            continue
        rule = field_link(key)
        for text, detail in _named(value):
            if rule is None and "[[" not in text:
                continue
            for target in _targets(text, source, folder, rule):
                fits = rule is not None and role in rule.roles
                named = rule.link_type if rule and fits else MENTIONS
                yield LinkReference(
                    name=target.name,
                    source=target.source,
                    link_type=named,
                    provenance=LinkProvenance.FRONTMATTER,
                    inward=bool(rule and fits and rule.inward),
                    titled=target.titled,
                    display=target.display,
                    fragment=target.fragment,
                    context=f"{key}: {target.display or target.name}{detail}"[:CONTEXT_CHARACTERS_MAX],
                    line=front.lines.get(key, 0),
                )


def _named(value: FrontmatterValue, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Each name in a value with what else is said about it."""
    if isinstance(value, str):
        yield value, ""
    elif isinstance(value, tuple):
        # `[[name]]` without quotes is a list in a list to YAML: what was meant is a wikilink.
        if len(value) == 1 and isinstance(value[0], tuple) and all(isinstance(item, str) for item in value[0]):
            yield f"[[{', '.join(texts(value[0]))}]]", ""
            return
        for item in value:
            if isinstance(item, tuple) and len(item) == 1 and isinstance(item[0], tuple):
                yield f"[[{', '.join(texts(item[0]))}]]", ""
            elif depth < 2:
                yield from _named(item, depth + 1)
    elif isinstance(value, Mapping):
        name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
        if isinstance(name, str):
            details = [
                str(value[key]) for key in _DETAIL_KEYS if isinstance(value.get(key), str) and value[key] != name
            ]
            yield name, f" ({', '.join(details)})" if details else ""


def _targets(text: str, source: str, folder: str, rule: FieldLink | None) -> Iterator[Target]:
    inner = _WIKILINK.findall(text)
    if not inner and rule is not None:
        inner = [part for part in _SEPARATOR.split(text) if part.strip()]
    elif not inner:
        return
    bracketed = "[[" in text
    for name in inner:
        name = name.strip().strip("\"'“”").removeprefix("- ").lstrip("@")
        if not bracketed and (_NO_NAME.fullmatch(name) or typed_date(name)):
            continue
        target = wikilink_target(name, source=source, folder=folder)
        if target and (bracketed or rule is None or not rule.slugs_only or not target.titled):
            yield target
