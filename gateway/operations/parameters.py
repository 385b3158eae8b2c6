"""What an operation can be told: parameters with a type, a description and bounds, and their JSON schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.operations.json_value import JsonObject


class Kind(StrEnum):
    """The JSON type of a parameter, as clients see it."""

    TEXT = "string"
    WHOLE_NUMBER = "integer"
    FLAG = "boolean"
    TEXTS = "array"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One named argument. Every parameter has a type and a description: some clients drop a tool that lacks one."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    default: bool | int | str | None = None
    """What holds when the argument is absent; None means that absence itself has a meaning."""
    choices: tuple[str, ...] = ()
    """The only values of a text, or of each text of a list."""
    minimum: int | None = None
    """Smaller numbers are refused."""
    maximum: int | None = None
    """Larger numbers are refused, or lowered with a note when `lowered`."""
    lowered: bool = False
    zero_is_default: bool = False
    """0 means the default, as in the services' own lists; the reply says so."""
    characters_max: int | None = None
    """Longer texts are refused, or keep only their end with a note when `keeps_end`."""
    keeps_end: bool = False
    """For queries: in pasted text the question stands at the end."""
    items_max: int | None = None
    """Longer lists are refused."""
    blank_counts: bool = False
    """An empty text is a value and not the same as absent."""
    aliases: tuple[str, ...] = ()
    """Other names that are accepted and not advertised, for clients that know them from elsewhere."""

    def schema(self) -> JsonObject:
        """The parameter as a property of a JSON schema."""
        schema: JsonObject = {"type": self.kind.value, "description": self.description}
        item: JsonObject = schema
        if self.kind is Kind.TEXTS:
            item = {"type": "string"}
            schema["items"] = item
        if self.choices:
            item["enum"] = list(self.choices)
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        # A bound that only lowers is told in the description: a client that validates would refuse what we accept.
        if self.maximum is not None and not self.lowered:
            schema["maximum"] = self.maximum
        if self.characters_max is not None and not self.keeps_end:
            item["maxLength"] = self.characters_max
        if self.items_max is not None:
            schema["maxItems"] = self.items_max
        if self.default is not None:
            schema["default"] = self.default
        return schema


def input_schema(parameters: tuple[Parameter, ...]) -> JsonObject:
    """The JSON schema of an operation's arguments."""
    schema: JsonObject = {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "additionalProperties": False,
    }
    required = [parameter.name for parameter in parameters if parameter.required]
    if required:
        schema["required"] = list(required)
    return schema


LINK_TYPES_MAX = 32
"""The services' own bound on link types, page types and tags of one call."""

SOURCE = Parameter(
    name="source",
    kind=Kind.TEXT,
    description="The source (tenant) to use, such as `default` or `work`. Leave out for your own.",
    characters_max=64,
    aliases=("source_id",),
)

SLUG = Parameter(
    name="slug",
    kind=Kind.TEXT,
    description="The page's address, such as `people/ada-example`. Any spelling; former slugs are followed on reads.",
    required=True,
    characters_max=3072,
)

MIN_REVISION = Parameter(
    name="min_revision",
    kind=Kind.WHOLE_NUMBER,
    description="Answer only from a state that holds this revision, as a write returned it. Waits a bounded time.",
    minimum=0,
)

REQUEST_ID = Parameter(
    name="request_id",
    kind=Kind.TEXT,
    description=(
        "Idempotency key, at most 36 ASCII characters, best a UUID. Send the same one to retry safely. Made for"
        " you when absent."
    ),
    characters_max=36,
)

IF_REVISION = Parameter(
    name="if_revision",
    kind=Kind.WHOLE_NUMBER,
    description=(
        "The revision you decided on, from your last read. If the page has another one by now, you get a "
        "conflict instead of overwriting someone's work."
    ),
    minimum=0,
)

WAIT = Parameter(
    name="wait",
    kind=Kind.TEXT,
    description=(
        "`text`: answer when search by words and links show the write, at most 2 seconds; the reply says if not"
        " yet. `none`: answer when it is stored."
    ),
    choices=("none", "text"),
    default="text",
)

PAGE_TOKEN = Parameter(
    name="page_token",
    kind=Kind.TEXT,
    description="`next_page_token` of the reply before, with the same other arguments. Leave out for the beginning.",
    characters_max=4096,
    aliases=("cursor",),
)


def limit(default: int, maximum: int, *, what: str) -> Parameter:
    """How many of something a reply has at most; a larger wish is lowered, since the caller can go on from there."""
    return Parameter(
        name="limit",
        kind=Kind.WHOLE_NUMBER,
        description=f"At most this many {what}. Default {default}; more than {maximum} is lowered to {maximum}.",
        default=default,
        minimum=0,
        maximum=maximum,
        lowered=True,
        zero_is_default=True,
        aliases=("page_size",),
    )
