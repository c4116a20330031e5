"""What the wire names and a later version builds: method to the reason that its caller is told."""

from __future__ import annotations

_GRAPH = "entities, facts and timelines come with the graph"
_BACKUP = "until backup over the wire is built, stop the box and copy its data directory: log/ holds everything"
_MODEL = "switching the model of a running box comes later; restart with `edge serve --model ID`"
_EGRESS = "this version sends nothing anywhere, so there is no list of it"

LATER = {
    "/edge.v1.GraphService/ListEntities": _GRAPH,
    "/edge.v1.GraphService/ListFacts": _GRAPH,
    "/edge.v1.GraphService/Timeline": _GRAPH,
    "/edge.v1.ApplianceService/Backup": _BACKUP,
    "/edge.v1.ApplianceService/Restore": _BACKUP,
    "/edge.v1.ApplianceService/UseModel": _MODEL,
    "/edge.v1.ApplianceService/ListEgress": _EGRESS,
}
