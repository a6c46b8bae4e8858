"""Alembic's entry: runs the revisions on the connection that `migrate` opened.

The transaction is the caller's, so an upgrade happens as a whole or not at all. Alembic does not
do so for SQLite by itself: Python's sqlite3 used to commit before each DDL statement; here it
leaves transactions alone.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
