"""Identity strings: the titles, tags and aliases that name things, made comparable without changing the page's text."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Characters that draw nothing, as the inside of a character class: zero width, direction marks, fillers, selectors."""

IDENTITY_CHARACTERS_MAX = 512
"""A title, tag or alias is cut here: longer ones are paragraphs that lost their line break."""

_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SPACE = re.compile(r"\s+")


def identity(text: str) -> str:
    """The text as a name: NFC, without invisible characters, on one line, spaces collapsed; empty when none is left."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    if text.isprintable() and "  " not in text:
        # The only space that is printable is that of ASCII, and no control character is.
        return text.strip()[:IDENTITY_CHARACTERS_MAX].rstrip()
    return _SPACE.sub(" ", _CONTROL.sub(" ", text)).strip()[:IDENTITY_CHARACTERS_MAX].rstrip()


def name_key(text: str) -> str:
    """What two spellings of one name have in common: NFKC, case folded, invisible characters and outer quotes dropped.

    The table of names compares titles and aliases by it. Idempotent.
    """
    previous = None
    # Folding can bring forth what composes or folds again; three rounds reach the fixed point of every character.
    for _ in range(4):
        if text == previous:
            break
        previous = text
        text = identity(unicodedata.normalize("NFKC", text).casefold()).strip("\"'`“”‘’«»「」『』《》 ")
    return text
