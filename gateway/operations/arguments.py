"""Turns what a caller sent into what an operation declared: the only place where input is read, for every edge.

Agents send `null` and `""` for what they leave out, numbers and lists as text, and whole argument objects as a string
of JSON. What can only mean one thing is taken, and the reply's `notes` say so; everything else is refused with the
field, the value and the next step.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.parameters import Kind, Parameter
from services.domain.errors import Internal, InvalidArgument

RESERVED = frozenset({"_meta", "cursor"})
"""Keys that protocols add on their own; they say nothing to an operation that did not declare them."""

ABSENT_WORDS = frozenset({"null", "undefined"})
"""What serializers make of an absent optional value."""

ArgumentValue = bool | int | str | tuple[str, ...] | JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The accepted arguments of one call, by declared name. Asking for an undeclared name is our own mistake."""

    values: Mapping[str, ArgumentValue | None]
    notes: list[str] = field(default_factory=list)
    """What was understood differently from how it was written; shown to the caller."""

    def text(self, name: str) -> str:
        """A text; empty when absent."""
        value = self._value(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        """A whole number; 0 when absent."""
        return self.optional_number(name) or 0

    def optional_number(self, name: str) -> int | None:
        """A whole number, or None when absent."""
        value = self._value(name)
        return value if isinstance(value, int) else None

    def flag(self, name: str) -> bool:
        """Whether a flag is set; False when absent."""
        return self._value(name) is True

    def optional_flag(self, name: str) -> bool | None:
        """A flag, or None when absent."""
        value = self._value(name)
        return value if isinstance(value, bool) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty when absent."""
        value = self._value(name)
        return value if isinstance(value, tuple) else ()

    def object(self, name: str) -> JsonObject:
        """A JSON object; empty when absent."""
        value = self._value(name)
        return value if isinstance(value, dict) else {}

    def _value(self, name: str) -> ArgumentValue | None:
        if name not in self.values:
            raise Internal("INTERNAL", f"the operation reads an argument it did not declare: {name}")
        return self.values[name]


def read_arguments(raw: JsonValue, parameters: Sequence[Parameter]) -> Arguments:
    """The arguments as declared, with a note for everything that was understood differently from how it was written.

    Raises:
        InvalidArgument: ARGUMENT_UNKNOWN, FIELD_REQUIRED or FIELD_INVALID, with the field, the value and the next step.
    """
    notes: list[str] = []
    given = _given(raw, notes)
    known = {name: parameter for parameter in parameters for name in (parameter.name, *parameter.aliases)}
    found: dict[str, ArgumentValue] = {}
    for key, value in given.items():
        parameter = known.get(key)
        if parameter is None:
            if key in RESERVED:
                continue
            raise _unknown(key, known, parameters)
        if _absent(value, parameter):
            continue
        # Errors name what the caller wrote, not what we call it.
        read = _read(parameter if key == parameter.name else replace(parameter, name=key), value, notes)
        if parameter.name in found and found[parameter.name] != read:
            raise _invalid(
                parameter, value, f"{key!r} says something else than {parameter.name!r}", "Send one of them."
            )
        found[parameter.name] = read
    for parameter in parameters:
        if parameter.required and parameter.name not in found:
            raise InvalidArgument(
                "FIELD_REQUIRED",
                f"{parameter.name} is missing or empty",
                field=parameter.name,
                next_step=f"Send {parameter.name}: {parameter.description}",
            )
    return Arguments(values={p.name: found.get(p.name, p.default) for p in parameters}, notes=notes)


def _given(raw: JsonValue, notes: list[str]) -> Mapping[str, JsonValue]:
    if raw is None or raw == "":
        return {}
    if isinstance(raw, str):
        parsed = _parsed(raw)
        if isinstance(parsed, dict):
            notes.append("The arguments came as a string of JSON and were read as the object in it.")
            return parsed
    if isinstance(raw, dict):
        return raw
    raise InvalidArgument(
        "FIELD_INVALID",
        "the arguments are not a JSON object",
        field="arguments",
        value=raw,
        next_step='Send an object with the arguments by name, such as {"slug": "people/ada-example"}.',
    )


def _unknown(key: str, known: Mapping[str, Parameter], parameters: Sequence[Parameter]) -> InvalidArgument:
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.5)
    names = ", ".join(parameter.name for parameter in parameters) or "none"
    hint = f"Did you mean {known[close[0]].name!r}? " if close else ""
    return InvalidArgument(
        "ARGUMENT_UNKNOWN",
        f"there is no argument {key!r}",
        field=key or "arguments",
        value=key,
        next_step=f"{hint}Known arguments: {names}.",
        metadata={"nearest": known[close[0]].name} if close else None,
    )


def _absent(value: JsonValue, parameter: Parameter) -> bool:
    if value is None:
        return True
    if not isinstance(value, str) or parameter.blank_counts:
        return False
    # A required text may well be the word "null"; an optional one never means it.
    return not value.strip() or (not parameter.required and value.strip().lower() in ABSENT_WORDS)


def _read(parameter: Parameter, value: JsonValue, notes: list[str]) -> ArgumentValue:
    match parameter.kind:
        case Kind.TEXT:
            return _text(parameter, value, notes)
        case Kind.WHOLE_NUMBER:
            return _whole_number(parameter, value, notes)
        case Kind.FLAG:
            return _flag(parameter, value, notes)
        case Kind.TEXTS:
            return _texts(parameter, value, notes)
        case Kind.OBJECT:
            return _object(parameter, value, notes)


def _text(parameter: Parameter, value: JsonValue, notes: list[str]) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong_type(parameter, value, "a text")
    if not isinstance(value, str):
        notes.append(f"{parameter.name} came as a number and was read as the text {str(value)!r}.")
        value = str(value)
    _check_encodable(parameter, value)
    if parameter.choices:
        value = _choice(parameter, value, notes)
    if parameter.keeps_end and "\0" in value:
        notes.append(f"{value.count(chr(0))} NUL characters were taken out of {parameter.name}.")
        value = value.replace("\0", "")
    limit = parameter.characters_max
    if limit is not None and len(value) > limit:
        if not parameter.keeps_end:
            raise _invalid(
                parameter,
                value,
                f"{parameter.name} has {len(value)} characters, at most {limit} are allowed",
                f"Send at most {limit} characters.",
            )
        notes.append(f"{parameter.name} has {len(value)} characters; only its last {limit} were used.")
        value = value[-limit:]
    return value


def _check_encodable(parameter: Parameter, text: str) -> None:
    """JSON can escape half of a surrogate pair, which no UTF-8 has and no service could store."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            "ENCODING_INVALID",
            f"{parameter.name} holds half of a surrogate pair, which is no character",
            field=parameter.name,
            value=text.encode("utf-8", "backslashreplace").decode("utf-8"),
            next_step="Send well-formed Unicode.",
        ) from error


def _choice(parameter: Parameter, value: str, notes: list[str]) -> str:
    if value in parameter.choices:
        return value
    folded = value.strip().lower()
    if folded in parameter.choices:
        notes.append(f"{parameter.name} was read as {folded!r}.")
        return folded
    raise _invalid(
        parameter,
        value,
        f"{parameter.name} cannot be {value[:40]!r}",
        f"Use one of: {', '.join(parameter.choices)}.",
    )


def _whole_number(parameter: Parameter, value: JsonValue, notes: list[str]) -> int:
    number = _as_whole_number(parameter, value, notes)
    if number == 0 and parameter.zero_is_default and isinstance(parameter.default, int):
        notes.append(f"{parameter.name} 0 means the default, {parameter.default}.")
        return parameter.default
    if parameter.minimum is not None and number < parameter.minimum:
        raise _invalid(
            parameter,
            value,
            f"{parameter.name} is below {parameter.minimum}",
            f"Send a number from {parameter.minimum} upwards, or leave {parameter.name} out.",
        )
    if parameter.maximum is not None and number > parameter.maximum:
        if not parameter.lowered:
            raise _invalid(
                parameter,
                value,
                f"{parameter.name} is above {parameter.maximum}",
                f"Send at most {parameter.maximum}.",
            )
        notes.append(f"{parameter.name} was lowered from {number} to {parameter.maximum}, the most there is.")
        return parameter.maximum
    return number


def _as_whole_number(parameter: Parameter, value: JsonValue, notes: list[str]) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and _is_integer(value.strip()):
        number = int(value.strip())
        notes.append(f"{parameter.name} came as text and was read as the number {number}.")
    else:
        raise _wrong_type(parameter, value, "a whole number")
    if abs(number) >= 2**63:
        raise _invalid(parameter, value, f"{parameter.name} does not fit into 64 bits", "Send a smaller number.")
    return number


def _is_integer(text: str) -> bool:
    """Whether a text is a whole number of at most 20 characters: every 64-bit number fits into them."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    return len(text) <= 20 and digits.isascii() and digits.isdigit()


def _flag(parameter: Parameter, value: JsonValue, notes: list[str]) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False}
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word in words:
        notes.append(f"{parameter.name} came as {value!r} and was read as {str(words[word]).lower()}.")
        return words[word]
    raise _wrong_type(parameter, value, "true or false")


def _texts(parameter: Parameter, value: JsonValue, notes: list[str]) -> tuple[str, ...]:
    items: JsonValue = value
    if isinstance(value, str):
        parsed = _parsed(value) if value.lstrip().startswith("[") else None
        items = parsed if isinstance(parsed, list) else [part.strip() for part in value.split(",")]
        notes.append(f"{parameter.name} came as text and was read as a list.")
    if not isinstance(items, list):
        raise _wrong_type(parameter, value, "a list of texts")
    texts = []
    for item in items:
        if not isinstance(item, str):
            raise _wrong_type(parameter, item, "a list of texts")
        _check_encodable(parameter, item)
        if item.strip():
            texts.append(_choice(parameter, item, notes) if parameter.choices else item.strip())
    if parameter.items_max is not None and len(texts) > parameter.items_max:
        raise _invalid(
            parameter,
            value,
            f"{parameter.name} has {len(texts)} entries, at most {parameter.items_max} are allowed",
            f"Send at most {parameter.items_max} entries.",
        )
    return tuple(dict.fromkeys(texts))


def _object(parameter: Parameter, value: JsonValue, notes: list[str]) -> JsonObject:
    if isinstance(value, str):
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            notes.append(f"{parameter.name} came as a string of JSON and was read as the object in it.")
            return parsed
    if isinstance(value, dict):
        return value
    raise _wrong_type(parameter, value, "a JSON object")


def _parsed(text: str) -> JsonValue:
    """The JSON value in a text, or None when there is none."""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _wrong_type(parameter: Parameter, value: JsonValue, wanted: str) -> InvalidArgument:
    return _invalid(parameter, value, f"{parameter.name} is not {wanted}", f"Send {wanted}: {parameter.description}")


def _invalid(parameter: Parameter, value: object, message: str, next_step: str) -> InvalidArgument:
    return InvalidArgument("FIELD_INVALID", message, field=parameter.name, value=value, next_step=next_step)
