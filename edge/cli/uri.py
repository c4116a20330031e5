"""What an edge:// URI names: a space, a kind in it, or one memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edge.errors import InvalidArgument, NotFound
from edge.types import check_kind, check_space

if TYPE_CHECKING:
    from edge.client import Client

SCHEME = "edge://"


@dataclass(frozen=True, slots=True)
class Place:
    """Empty from where the URI ends; all of it empty means everything."""

    space: str = ""
    kind: str = ""
    id: str = ""

    def uri(self) -> str:
        return SCHEME + "/".join(filter(None, (self.space, self.kind, self.id)))

    def selection(self) -> dict[str, Any]:
        """The client's keywords for what is in it."""
        found: dict[str, Any] = {"spaces": [self.space]} if self.space else {}
        return {**found, "kinds": [self.kind]} if self.kind else found


def parse(uri: str, field: str) -> Place:
    """`edge://SPACE/KIND/ID` or a beginning of it; the scheme and a last slash may be missing.

    Raises InvalidArgument that names the field.
    """
    parts = uri.removeprefix(SCHEME).removesuffix("/").split("/")
    if parts == [""]:
        return Place()
    # A private space's name has two parts.
    width = 2 if parts[0] == "private" else 1
    if not all(parts) or not width <= len(parts) <= width + 2:
        raise InvalidArgument(
            f"{field}: use edge://public, edge://work or edge://private/NAME, then /KIND, then /ID", field=field
        )
    space = check_space("/".join(parts[:width]), field)
    kind, id_ = (*parts[width:], "", "")[:2]
    return Place(space, check_kind(kind, field) if kind else "", id_)


def get(box: Client, place: Place, level: str, field: str) -> Any:
    """The one memory there. Raises InvalidArgument where the place may hold many, NotFound where there is none."""
    if not place.id:
        raise InvalidArgument(
            f"{field}: give a memory's id, or its edge:// URI to the end; edge ls {place.uri()} lists what is there",
            field=field,
        )
    memory = box.get(place.uri() if place.space else place.id, level=level)
    # The box goes by the space and the id alone.
    if place.kind and place.kind != memory.kind:
        raise NotFound(
            f"{field}: there is no such memory of this kind; with this id there is {memory.uri}", field=field
        )
    return memory
