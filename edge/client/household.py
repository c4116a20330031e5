"""Who has what in the box: its spaces and tokens. A part of AsyncClient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edge.client.line import Line
from edge.client.requests import string
from edge.errors import InvalidArgument
from edge.v1 import appliance_pb2
from edge.v1.appliance_pb2 import Space, Token

_SCOPES = {
    "read": appliance_pb2.SCOPE_READ,
    "write": appliance_pb2.SCOPE_WRITE,
    "delete": appliance_pb2.SCOPE_DELETE,
    "admin": appliance_pb2.SCOPE_ADMIN,
}


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which nobody can ask for again."""

    token: Token
    secret: str = field(repr=False)


class Household:
    """What a token needs for these is ADMIN on `*`; for spaces READ, WRITE and DELETE of the space."""

    _line: Line

    async def create_token(self, name: str, grants: Mapping[str, Iterable[str]]) -> NewToken:
        """A token for the client of this name.

        grants: scopes ("read", "write", "delete", "admin") by space pattern: `*`, `public`, `work`, `private/<name>` or
        `private/*`. Raises InvalidArgument that names the field, FailedPrecondition when the name has a token.
        """
        messages = [
            appliance_pb2.Grant(space_pattern=string(pattern, "grants"), scopes=[_scope(scope) for scope in scopes])
            for pattern, scopes in grants.items()
        ]
        request = appliance_pb2.CreateTokenRequest(name=string(name, "name"), grants=messages)
        response: appliance_pb2.CreateTokenResponse = await self._line.call(
            "appliance", "CreateToken", request, None, again=False
        )
        return NewToken(response.token, response.secret)

    async def list_tokens(self) -> Sequence[Token]:
        """All, the revoked too, without their secrets."""
        response: appliance_pb2.ListTokensResponse = await self._line.call(
            "appliance", "ListTokens", appliance_pb2.ListTokensRequest(), None, again=True
        )
        return response.tokens

    async def revoke_token(self, id_or_name: str) -> Token:
        """From now on nothing gets in with it, and its open streams end. Raises NotFound."""
        request = appliance_pb2.RevokeTokenRequest(id=string(id_or_name, "id"))
        response: appliance_pb2.RevokeTokenResponse = await self._line.call(
            "appliance", "RevokeToken", request, None, again=True
        )
        return response.token

    async def list_spaces(self) -> Sequence[Space]:
        """Those that the token may read."""
        response: appliance_pb2.ListSpacesResponse = await self._line.call(
            "appliance", "ListSpaces", appliance_pb2.ListSpacesRequest(), None, again=True
        )
        return response.spaces

    async def create_space(self, name: str) -> Space:
        """public, work or private/<name>; one that is there already is fine. Raises InvalidArgument."""
        request = appliance_pb2.CreateSpaceRequest(name=string(name, "name"))
        response: appliance_pb2.CreateSpaceResponse = await self._line.call(
            "appliance", "CreateSpace", request, None, again=True
        )
        return response.space

    async def delete_space(self, name: str) -> None:
        """Erases the space with all its memories, for good. Raises NotFound."""
        request = appliance_pb2.DeleteSpaceRequest(name=string(name, "name"))
        await self._line.call("appliance", "DeleteSpace", request, None, again=False)


def _scope(name: str) -> appliance_pb2.Scope.ValueType:
    if name not in _SCOPES:
        raise InvalidArgument(f"scopes: use {', '.join(_SCOPES)}", field="scopes")
    return _SCOPES[name]
