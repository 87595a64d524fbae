"""The audit log of a workspace."""

from custody.schemas.logs import ExportedLogs, ExportLogsQuery, LogsPage, LogsQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import NotOrgMember
from custody.server.web.endpoint import Call, Endpoint, Unit

READERS = frozenset({PermissionName.VIEW_LOGS})


def get_logs(call: Call[LogsQuery]) -> LogsPage:
    """A page of the workspace's log, the oldest first. Follow ``next_cursor``: rows that come meanwhile move nothing."""
    return call.services.logs.page(call.db, call.caller, call.access, call.body)


def export_audit_logs(call: Call[ExportLogsQuery]) -> ExportedLogs:
    """Everything that matches as CSV (RFC 4180), safe to open in a spreadsheet. The export is itself recorded."""
    services, workspace_id = call.services, call.body.workspace_uid
    with services.rates.export(call.caller.user_id):
        with services.store.read() as db:
            access = call.enter(db, workspace_id)
            export = services.logs.export(db, call.caller, access, call.body)
        # Let in again: whoever lost the permission meanwhile gets nothing (P23).
        with services.store.write() as db:
            services.logs.record_export(db, call.caller, call.enter(db, workspace_id), export)
    return export.shown


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/v1/get-logs",
        get_logs,
        LogsPage,
        READERS,
        Unit.READ,
        LogsQuery,
        workspace_field="workspace_uid",
        refuses=(NotOrgMember,),
    ),
    Endpoint(
        "GET",
        "/api/v1/export-audit-logs",
        export_audit_logs,
        ExportedLogs,
        READERS,
        Unit.OWN,
        ExportLogsQuery,
        workspace_field="workspace_uid",
        refuses=(NotOrgMember,),
    ),
)
