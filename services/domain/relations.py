"""The closed table of link types: what each means both ways round, in English and Chinese, and which fields make it.

Pure data and small look-ups. The parser types links by it, the gateway reads relational questions by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.domain.inference import FOLDER_TYPES


class Role(StrEnum):
    """What a page is, as far as relations care."""

    PERSON = "person"
    ORGANIZATION = "organization"
    GATHERING = "gathering"
    TEXT = "text"
    """Words about things: a note, a concept, an article. Nobody founds or employs one."""
    OTHER = "other"
    """Something else, or something whose kind is unknown: a project, a product, a deal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A link type read from its subject to its object, and back."""

    name: str
    inverse: str
    """The label of the way back, as `founded_by`."""
    english: str
    """As in `Ana … Acme`."""
    english_inverse: str
    """As in `Acme … Ana`."""
    chinese: str
    chinese_inverse: str
    subjects: frozenset[Role]
    """What may be the subject."""
    objects: frozenset[Role]


_PERSON, _ORGANIZATION, _GATHERING, _OTHER = Role.PERSON, Role.ORGANIZATION, Role.GATHERING, Role.OTHER
_ACTORS = frozenset({_PERSON, _ORGANIZATION})
_BODIES = frozenset({_ORGANIZATION, _OTHER})
_ALL = frozenset(Role)

FOUNDED = "founded"
INVESTED_IN = "invested_in"
WORKS_AT = "works_at"
WORKED_AT = "worked_at"
ADVISES = "advises"
ATTENDED = "attended"
MENTIONS = "mentions"

RELATIONS: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            name=FOUNDED, inverse="founded_by", english="founded", english_inverse="was founded by",
            chinese="创立了", chinese_inverse="的创始人是", subjects=_ACTORS, objects=_BODIES,
        ),
        Relation(
            name=INVESTED_IN, inverse="investor", english="invested in", english_inverse="was backed by",
            chinese="投资了", chinese_inverse="的投资方是", subjects=_ACTORS, objects=_BODIES,
        ),
        Relation(
            name="led_round", inverse="round_led_by", english="led the round of", english_inverse="was led by",
            chinese="领投了", chinese_inverse="由其领投的是", subjects=_ACTORS, objects=_BODIES,
        ),
        Relation(
            name=WORKS_AT, inverse="employs", english="works at", english_inverse="employs",
            chinese="任职于", chinese_inverse="的员工有", subjects=frozenset({_PERSON}), objects=_BODIES,
        ),
        Relation(
            name=WORKED_AT, inverse="employed", english="worked at", english_inverse="used to employ",
            chinese="曾任职于", chinese_inverse="的前员工有", subjects=frozenset({_PERSON}), objects=_BODIES,
        ),
        Relation(
            name=ADVISES, inverse="advised_by", english="advises", english_inverse="is advised by",
            chinese="担任顾问于", chinese_inverse="的顾问是", subjects=_ACTORS, objects=_BODIES | {_PERSON},
        ),
        Relation(
            name=ATTENDED, inverse="attended_by", english="attended", english_inverse="was attended by",
            chinese="参加了", chinese_inverse="的参会人有", subjects=_ACTORS, objects=frozenset({_GATHERING, _OTHER}),
        ),
        Relation(
            name="partner_of", inverse="partner", english="is a partner of", english_inverse="has as partner",
            chinese="的合伙人属于", chinese_inverse="的合伙人是", subjects=_ACTORS, objects=_BODIES,
        ),
        Relation(
            name="discussed_in", inverse="discusses", english="is discussed in", english_inverse="discusses",
            chinese="被讨论于", chinese_inverse="讨论了", subjects=_ALL, objects=_ALL,
        ),
        Relation(
            name="source", inverse="source_of", english="has as source", english_inverse="is the source of",
            chinese="来源于", chinese_inverse="是来源", subjects=_ALL, objects=_ALL,
        ),
        Relation(
            name="related_to", inverse="related_to", english="is related to", english_inverse="is related to",
            chinese="相关于", chinese_inverse="相关于", subjects=_ALL, objects=_ALL,
        ),
        Relation(
            name=MENTIONS, inverse="mentioned_by", english="mentions", english_inverse="is mentioned by",
            chinese="提到", chinese_inverse="被提到于", subjects=_ALL, objects=_ALL,
        ),
    )
}  # fmt: skip
"""By name. Other types exist only where somebody adds a link by hand."""


@dataclass(frozen=True, slots=True)
class FieldLink:
    """What a frontmatter field, or a label in the text, says about the pages it names."""

    link_type: str
    inward: bool
    """Whether the named page is the subject: `investors:` on a company."""
    roles: frozenset[Role]
    """The pages it says this on; on others the field only mentions."""
    slugs_only: bool = False
    """Whether a bare word is no name: `source: email` names no page."""


def _fields() -> dict[str, FieldLink]:
    person, organization = frozenset({_PERSON}), frozenset({_ORGANIZATION})
    bodies = frozenset({_ORGANIZATION, _OTHER})
    gathering = frozenset({_GATHERING, _OTHER, Role.TEXT})
    table: tuple[tuple[str, bool, frozenset[Role], str], ...] = (
        (WORKS_AT, False, person, """company companies employer works_at work organization organisation 公司
            任职 就职 任职于
            就职于 供职于 单位 工作单位 雇主 所在公司"""),
        (WORKED_AT, False, person, """worked_at former_company former_companies former_employer former_employers
            previously
            past_companies 曾任职 曾就职 曾任职于 曾就职于 前公司 前东家 原单位"""),
        (FOUNDED, False, _ACTORS, "founded founder_of cofounded co_founded 创立 创办 创立了 创办了 创建"),
        (FOUNDED, True, bodies, """founder founders cofounders co_founders cofounder co_founder founded_by
            创始人 联合创始人
            创办人 创立者"""),
        (INVESTED_IN, False, _ACTORS, """invested_in investments portfolio portfolio_companies backed 投资了
            投资于 投资公司
            被投企业 投资组合 已投项目 投资项目"""),
        (INVESTED_IN, True, bodies, """investors investor backers backed_by invested_by shareholders 投资方
            投资人 投资者
            投资机构 股东 天使投资人"""),
        ("led_round", True, bodies, "lead lead_investor led_by 领投 领投方"),
        (WORKS_AT, True, organization, """key_people employees team staff people ceo cto coo cfo 员工 团队 成员
            核心成员
            主要成员 关键人物 负责人 首席执行官 总经理"""),
        (WORKED_AT, True, organization, "former_employees former_staff alumni 前员工 前成员 离职员工"),
        (ADVISES, False, _ACTORS, "advises advising advisor_to adviser_to 担任顾问 顾问于 任顾问"),
        (ADVISES, True, bodies, "advisors advisor advisers adviser advised_by 顾问 顾问团 顾问团队"),
        (ATTENDED, False, _ACTORS, "attended 参加 出席 参加了"),
        (ATTENDED, True, gathering, """attendees attendee participants participant present attended_by 参会人 参会者
            参会人员 与会者 与会人员 出席人 出席者 参加人 参与者 参与人"""),
        ("partner_of", True, organization, "partner partners 合伙人"),
        ("discussed_in", True, _ALL, "sources"),
        ("source", False, _ALL, "source 来源"),
        ("related_to", False, _ALL, "related see_also related_to 相关 另见 参见"),
    )  # fmt: skip
    return {
        name: FieldLink(link_type, inward, roles, slugs_only=link_type in ("source", "discussed_in"))
        for link_type, inward, roles, names in table
        for name in names.split()
    }


FIELDS: dict[str, FieldLink] = _fields()
"""By field name in lower case, with `_` for spaces and hyphens."""

_TYPE_ROLES = {
    "person": _PERSON, "contact": _PERSON, "individual": _PERSON, "founder": _PERSON, "联系人": _PERSON,
    "company": _ORGANIZATION, "organization": _ORGANIZATION, "organisation": _ORGANIZATION, "org": _ORGANIZATION,
    "fund": _ORGANIZATION, "startup": _ORGANIZATION, "team": _ORGANIZATION, "institution": _ORGANIZATION,
    "school": _ORGANIZATION, "基金": _ORGANIZATION, "机构": _ORGANIZATION, "组织": _ORGANIZATION, "团队":
            _ORGANIZATION,
    "meeting": _GATHERING, "event": _GATHERING, "call": _GATHERING, "conference": _GATHERING,
    "calendar-event": _GATHERING, "note": Role.TEXT, "concept": Role.TEXT, "reading": Role.TEXT, "writing": Role.TEXT,
    "essay": Role.TEXT, "article": Role.TEXT, "chat": Role.TEXT, "conversation": Role.TEXT, "bookmark": Role.TEXT,
    "code": Role.TEXT, "archive": Role.TEXT, "email": Role.TEXT, "source": Role.TEXT, "media": Role.TEXT,
}  # fmt: skip


def role_of_type(page_type: str) -> Role:
    """What a page of this type is."""
    return _TYPE_ROLES.get(page_type.casefold(), Role.OTHER)


_FOLDER_ROLES = {folder: role_of_type(page_type) for folder, page_type in FOLDER_TYPES.items()}


def role_of_name(name: str) -> Role | None:
    """What the folders of a name written as a path say it is; None when they say nothing."""
    for folder in reversed(name.split("/")[:-1]):
        role = _FOLDER_ROLES.get(folder) or _FOLDER_ROLES.get(folder.casefold())
        if role:
            return role
    return None


def allows(link_type: str, subject: Role | None, target: Role | None) -> bool:
    """Whether a subject and an object of these roles can have this relation; unknown roles can have any."""
    relation = RELATIONS[link_type]
    return (subject is None or subject in relation.subjects) and (target is None or target in relation.objects)


def field_link(name: str) -> FieldLink | None:
    """What a field or label of this name says; None when it is no relation of ours."""
    return FIELDS.get(name.strip().casefold().replace(" ", "_").replace("-", "_"))
