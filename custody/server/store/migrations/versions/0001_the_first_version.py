"""the first version: a new database has its tables from the models"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    pass
