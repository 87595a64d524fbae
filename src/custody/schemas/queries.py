"""What reading calls take in their query string. Text becomes numbers here: a query has no other way to say them."""

from typing import Annotated

from pydantic import Field

from custody.schemas.common import MAX_INT64, ApiNetwork, Request

QueryId = Annotated[int, Field(ge=1, le=MAX_INT64)]


class WorkspaceQuery(Request):
    workspace_id: QueryId


class NetworkQuery(Request):
    network: ApiNetwork
