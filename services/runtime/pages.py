"""Page tokens: where a listing goes on, bound to the listing it came from.

A token is opaque and not secret: it holds a position the caller has seen and a digest of the call's arguments, so that
it is refused by another call or after a change of filters, instead of silently continuing something else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping

from services.domain.errors import InvalidArgument

VERSION = b"\x01"
DIGEST_BYTES = 8
TOKEN_CHARACTERS_MAX = 8_192
"""Positions are slugs at most; more is not a token of ours."""


def encode_page_token(position: str, arguments: Mapping[str, str]) -> str:
    """A token that continues after `position` when the call is made again with the same arguments."""
    raw = VERSION + digest(arguments) + position.encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def decode_page_token(token: str, arguments: Mapping[str, str]) -> str:
    """The position in a token; empty for an empty token, which is the beginning.

    Raises:
        InvalidArgument: It is no token of ours, or was made by a call with other arguments.
    """
    if not token:
        return ""
    try:
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise ValueError("too long")
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        position = raw[1 + DIGEST_BYTES :].decode()
    except (ValueError, binascii.Error) as error:
        raise invalid(token, "is not a page token") from error
    if raw[:1] != VERSION or len(raw) < 1 + DIGEST_BYTES:
        raise invalid(token, "is not a page token")
    if raw[1 : 1 + DIGEST_BYTES] != digest(arguments):
        raise invalid(token, "was made by a call with other arguments")
    return position


def digest(arguments: Mapping[str, str]) -> bytes:
    """A short digest of arguments, whatever their order."""
    joined = "\0".join(f"{len(key)}:{key}={len(value)}:{value}" for key, value in sorted(arguments.items()))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()[:DIGEST_BYTES]


def invalid(token: str, why: str) -> InvalidArgument:
    """The refusal of a token."""
    return InvalidArgument(
        "PAGE_TOKEN_INVALID",
        f"the page token {why}",
        field="page_token",
        value=token,
        next_step="Leave page_token out to begin again, and keep the other arguments between pages.",
    )
