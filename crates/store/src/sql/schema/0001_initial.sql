-- All tables. PostgreSQL has other words for INTEGER PRIMARY KEY, which numbers rows by
-- itself, for the search table, and for the operators on text.

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

-- The log over all sessions: entries are numbered from 0, and each says where the chain of
-- a session stood.
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

-- What sessions spent and reserved together, and what holds for it: amounts and terms
-- are JSON, because further measures are added to them.
CREATE TABLE accounts (
    account  TEXT   NOT NULL PRIMARY KEY,
    terms    TEXT   NOT NULL,
    spent    TEXT   NOT NULL,
    reserved TEXT   NOT NULL,
    before   TEXT   NOT NULL,
    since_ms BIGINT NOT NULL
);

-- What each session says of itself; an account is the sum of its sessions.
CREATE TABLE charges (
    session TEXT NOT NULL PRIMARY KEY,
    charged TEXT NOT NULL
);

-- What holds for a memory scope, where somebody set it: settings are JSON.
CREATE TABLE memory_scopes (
    scope     TEXT   NOT NULL PRIMARY KEY,
    settings  TEXT   NOT NULL,
    set_by    TEXT   NOT NULL,
    set_at_ms BIGINT NOT NULL
);

-- Bytes of files. Versions that only moved share them.
CREATE TABLE contents (
    content INTEGER NOT NULL PRIMARY KEY,
    bytes   BYTEA   NOT NULL
);

-- What stands at a path now; a row for every path where anything ever was.
-- state: 0 a file, 1 a folder, 2 nothing any more. folder: the path above. author and
-- labels are those of the version, because listings tell them.
CREATE TABLE entries (
    entry        INTEGER NOT NULL PRIMARY KEY,
    scope        TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    folder       TEXT    NOT NULL,
    state        INTEGER NOT NULL,
    revision     BIGINT  NOT NULL,
    bytes        BIGINT  NOT NULL,
    digest       TEXT,
    executable   INTEGER NOT NULL,
    modified_ms  BIGINT  NOT NULL,
    review_by_ms BIGINT,
    content      BIGINT,
    searchable   INTEGER NOT NULL,
    author       TEXT    NOT NULL,
    labels       TEXT    NOT NULL,
    UNIQUE (scope, path)
);

CREATE INDEX entries_by_folder ON entries (scope, folder, path) WHERE state < 2;
CREATE INDEX entries_by_review ON entries (scope, review_by_ms)
    WHERE state = 0 AND review_by_ms IS NOT NULL;

-- Every state of every path. content is empty for what has none or lost it; labels and
-- redacted are JSON.
CREATE TABLE versions (
    version         INTEGER NOT NULL PRIMARY KEY,
    scope           TEXT    NOT NULL,
    path            TEXT    NOT NULL,
    revision        BIGINT  NOT NULL,
    state           INTEGER NOT NULL,
    bytes           BIGINT  NOT NULL,
    digest          TEXT,
    executable      INTEGER NOT NULL,
    content         BIGINT,
    author          TEXT    NOT NULL,
    via             TEXT    NOT NULL,
    at_ms           BIGINT  NOT NULL,
    agent           TEXT,
    session         TEXT,
    seq             BIGINT,
    labels          TEXT    NOT NULL,
    message         TEXT,
    review_by_ms    BIGINT,
    origin_scope    TEXT,
    origin_path     TEXT,
    origin_revision BIGINT,
    accepted_by     TEXT,
    redacted        TEXT,
    UNIQUE (scope, path, revision)
);

CREATE INDEX versions_by_session ON versions (session, version) WHERE session IS NOT NULL;
CREATE INDEX versions_by_digest ON versions (digest) WHERE content IS NOT NULL;
CREATE INDEX versions_by_content ON versions (content) WHERE content IS NOT NULL;
CREATE INDEX versions_by_origin ON versions (origin_scope, origin_path, origin_revision)
    WHERE origin_scope IS NOT NULL;

-- standing: 0 open, 1 accepted, 2 rejected, 3 withdrawn. digest is empty for a removal.
CREATE TABLE proposals (
    proposal        INTEGER NOT NULL PRIMARY KEY,
    scope           TEXT    NOT NULL,
    path            TEXT    NOT NULL,
    base            BIGINT  NOT NULL,
    standing        INTEGER NOT NULL,
    bytes           BIGINT  NOT NULL,
    digest          TEXT,
    executable      INTEGER NOT NULL,
    content         BIGINT,
    author          TEXT    NOT NULL,
    via             TEXT    NOT NULL,
    at_ms           BIGINT  NOT NULL,
    agent           TEXT,
    session         TEXT,
    seq             BIGINT,
    labels          TEXT    NOT NULL,
    message         TEXT,
    review_by_ms    BIGINT,
    origin_scope    TEXT,
    origin_path     TEXT,
    origin_revision BIGINT,
    redacted        TEXT,
    decided_by      TEXT,
    decided_at_ms   BIGINT,
    reason          TEXT,
    revision        BIGINT
);

CREATE INDEX proposals_by_scope ON proposals (scope, standing, proposal);
CREATE INDEX proposals_by_digest ON proposals (digest) WHERE content IS NOT NULL;
CREATE INDEX proposals_by_content ON proposals (content) WHERE content IS NOT NULL;
CREATE INDEX proposals_by_origin ON proposals (origin_scope, origin_path, origin_revision)
    WHERE origin_scope IS NOT NULL;

CREATE TABLE comments (
    comment  INTEGER NOT NULL PRIMARY KEY,
    proposal BIGINT  NOT NULL,
    author   TEXT    NOT NULL,
    at_ms    BIGINT  NOT NULL,
    text     TEXT    NOT NULL
);

CREATE INDEX comments_by_proposal ON comments (proposal, comment);

-- Words of the newest versions, and the name of the memory scope as a word of its own, so that
-- whoever sees few memory scopes pays for those. The index alone is kept: texts are in contents.
CREATE VIEW searched AS
    SELECT entries.entry AS entry, 'x' || hex(entries.scope) AS scope, entries.path AS path,
    CAST(contents.bytes AS TEXT) AS text
    FROM entries JOIN contents ON contents.content = entries.content
    WHERE entries.searchable = 1;

CREATE VIRTUAL TABLE search USING fts5(
    scope, path, text, content = 'searched', content_rowid = 'entry',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- What is kept of whom: `all`, an owner of memory scopes as `person:ada`, or `session:ID`, of
-- which nothing is ever taken away.
CREATE TABLE usage (
    holder   TEXT   NOT NULL PRIMARY KEY,
    bytes    BIGINT NOT NULL,
    entries  BIGINT NOT NULL,
    versions BIGINT NOT NULL
);

INSERT INTO usage (holder, bytes, entries, versions) VALUES ('all', 0, 0, 0);

INSERT INTO meta (name, value) VALUES ('format', '7');
