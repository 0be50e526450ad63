-- Format 2: the log over all sessions, and its checkpoints. Also valid for PostgreSQL.

-- Entries are numbered from 0. Each says where the chain of a session stood.
CREATE TABLE log (
    entry   BIGINT NOT NULL PRIMARY KEY,
    session TEXT   NOT NULL,
    seq     BIGINT NOT NULL,
    link    TEXT   NOT NULL
);

CREATE INDEX log_by_session ON log (session, seq);

-- A checkpoint of the first so many entries: the signed note, and the roots of the
-- full subtrees, from which the log goes on.
CREATE TABLE checkpoints (
    size BIGINT NOT NULL PRIMARY KEY,
    note TEXT   NOT NULL,
    edge TEXT   NOT NULL
);

UPDATE meta SET value = '2' WHERE name = 'format';
