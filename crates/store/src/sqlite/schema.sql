-- Format 1. Also valid for PostgreSQL: no keyword and no type stands here that
-- only one of them understands.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE sessions (
    session       TEXT   NOT NULL PRIMARY KEY,
    created_at_ms BIGINT NOT NULL,
    last_at_ms    BIGINT NOT NULL,
    head_seq      BIGINT NOT NULL,
    head_link     TEXT   NOT NULL,
    title         TEXT,
    status        TEXT
);

CREATE INDEX sessions_by_creation ON sessions (created_at_ms, session);

-- The rows of all sessions lie one after the other, in the order in which they
-- were appended, so that a commit of many sessions touches few pages.
CREATE TABLE events (
    session TEXT    NOT NULL,
    seq     BIGINT  NOT NULL,
    at_ms   BIGINT  NOT NULL,
    format  INTEGER NOT NULL,
    payload TEXT,
    blob    TEXT,
    link    TEXT    NOT NULL,
    PRIMARY KEY (session, seq),
    CHECK ((payload IS NULL) <> (blob IS NULL))
);

CREATE TABLE snapshots (
    session TEXT    NOT NULL PRIMARY KEY,
    seq     BIGINT  NOT NULL,
    version INTEGER NOT NULL,
    seal    TEXT    NOT NULL,
    state   BYTEA   NOT NULL
);

INSERT INTO meta (name, value) VALUES ('format', '1');
