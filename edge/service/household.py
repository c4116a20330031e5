"""Who has what in the box: spaces and tokens. A part of ApplianceService."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from edge.errors import InvalidArgument
from edge.lan.grants import client_grants
from edge.lan.store import Token
from edge.lan.tokens import Tokens
from edge.service import permissions
from edge.service.convert import timestamp
from edge.spaces import Listed, Spaces
from edge.types import Grant, Scope, check_space
from edge.v1 import appliance_pb2, appliance_pb2_grpc


class Household(appliance_pb2_grpc.ApplianceServiceServicer):
    """ListSpaces, CreateSpace, DeleteSpace, CreateToken, ListTokens, RevokeToken. Blocking work goes to `pool`."""

    def __init__(self, spaces: Spaces, tokens: Tokens, pool: ThreadPoolExecutor) -> None:
        self._spaces = spaces
        self._tokens = tokens
        self._pool = pool

    async def ListSpaces(
        self, request: appliance_pb2.ListSpacesRequest, context: Any
    ) -> appliance_pb2.ListSpacesResponse:
        caller = permissions.current.get()
        listed = await self._run(self._spaces.listed)
        return appliance_pb2.ListSpacesResponse(
            spaces=[_message(one) for one in listed if caller.may(Scope.READ, one.name)]
        )

    async def CreateSpace(
        self, request: appliance_pb2.CreateSpaceRequest, context: Any
    ) -> appliance_pb2.CreateSpaceResponse:
        name = _permitted(request.name, Scope.WRITE)
        await self._run(self._spaces.open, name)
        made = appliance_pb2.Space(name=name)
        # What is in it already is for those who may read it.
        if permissions.current.get().may(Scope.READ, name):
            listed = await self._run(self._spaces.listed)
            made = next((_message(one) for one in listed if one.name == name), made)
        return appliance_pb2.CreateSpaceResponse(space=made)

    async def DeleteSpace(
        self, request: appliance_pb2.DeleteSpaceRequest, context: Any
    ) -> appliance_pb2.DeleteSpaceResponse:
        await self._run(self._spaces.delete, _permitted(request.name, Scope.DELETE))
        return appliance_pb2.DeleteSpaceResponse()

    async def CreateToken(
        self, request: appliance_pb2.CreateTokenRequest, context: Any
    ) -> appliance_pb2.CreateTokenResponse:
        # Without grants it may do what a client that pairs may do.
        grants = _grants(request.grants) or client_grants(request.name)
        token, secret = await self._run(self._tokens.create, request.name, grants)
        return appliance_pb2.CreateTokenResponse(token=_token_message(token), secret=secret)

    async def ListTokens(
        self, request: appliance_pb2.ListTokensRequest, context: Any
    ) -> appliance_pb2.ListTokensResponse:
        listed = await self._run(self._tokens.listed)
        return appliance_pb2.ListTokensResponse(tokens=map(_token_message, listed))

    async def RevokeToken(
        self, request: appliance_pb2.RevokeTokenRequest, context: Any
    ) -> appliance_pb2.RevokeTokenResponse:
        if not request.id:
            raise InvalidArgument("id: name the token, or give its id; `edge token list` shows them", field="id")
        return appliance_pb2.RevokeTokenResponse(token=_token_message(await self._run(self._tokens.revoke, request.id)))

    async def _run(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


def _permitted(name: str, scope: Scope) -> str:
    if not name:
        raise InvalidArgument("name: name the space: public, work or private/<name>", field="name")
    return permissions.check_space_right(permissions.current.get(), scope, check_space(name, "name"), "name")


def _grants(wire: Sequence[appliance_pb2.Grant]) -> list[Grant]:
    """Raises InvalidArgument for a scope that this version does not know; the rest is checked where tokens are made."""
    known = {int(scope) for scope in Scope}
    for index, grant in enumerate(wire):
        if not known.issuperset(grant.scopes):
            raise InvalidArgument(
                f"grants[{index}].scopes: one of them is not known to this version", field=f"grants[{index}].scopes"
            )
    return [Grant(grant.space_pattern, frozenset(map(Scope, grant.scopes))) for grant in wire]


def _token_message(token: Token) -> appliance_pb2.Token:
    return appliance_pb2.Token(
        id=token.id,
        name=token.name,
        grants=[
            appliance_pb2.Grant(
                space_pattern=grant.pattern,
                scopes=sorted(map(int, grant.scopes)),  # type: ignore[arg-type]  # the enums share their numbers
            )
            for grant in token.grants
        ],
        created_at=timestamp(token.created_at),
        last_used_at=timestamp(token.last_used_at) if token.last_used_at else None,
        revoked_at=timestamp(token.revoked_at) if token.revoked_at else None,
    )


def _message(listed: Listed) -> appliance_pb2.Space:
    return appliance_pb2.Space(
        name=listed.name,
        created_at=None if listed.created_at is None else timestamp(listed.created_at),
        memories=listed.memories,
        bytes=listed.bytes,
    )
