-- Format 4: entries of memory and skills. PostgreSQL has other words for INTEGER PRIMARY
-- KEY, which numbers rows by itself, and for the table at the end.

-- What holds for a shelf, where somebody set it: settings are JSON.
CREATE TABLE shelves (
    shelf     TEXT   NOT NULL PRIMARY KEY,
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
-- state: 0 a file, 1 a folder, 2 nothing any more. folder: the path above.
CREATE TABLE entries (
    entry        INTEGER NOT NULL PRIMARY KEY,
    shelf        TEXT    NOT NULL,
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
    UNIQUE (shelf, path)
);

CREATE INDEX entries_by_folder ON entries (shelf, folder, path) WHERE state < 2;
CREATE INDEX entries_by_review ON entries (shelf, review_by_ms)
    WHERE state = 0 AND review_by_ms IS NOT NULL;

-- Every state of every path. content is empty for what has none or lost it; labels and
-- redacted are JSON.
CREATE TABLE versions (
    version         INTEGER NOT NULL PRIMARY KEY,
    shelf           TEXT    NOT NULL,
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
    origin_shelf    TEXT,
    origin_path     TEXT,
    origin_revision BIGINT,
    accepted_by     TEXT,
    redacted        TEXT,
    UNIQUE (shelf, path, revision)
);

CREATE INDEX versions_by_session ON versions (session, version) WHERE session IS NOT NULL;
CREATE INDEX versions_by_digest ON versions (digest) WHERE content IS NOT NULL;
CREATE INDEX versions_by_content ON versions (content) WHERE content IS NOT NULL;
CREATE INDEX versions_by_origin ON versions (origin_shelf, origin_path, origin_revision)
    WHERE origin_shelf IS NOT NULL;

-- standing: 0 open, 1 accepted, 2 rejected, 3 withdrawn. digest is empty for a removal.
CREATE TABLE proposals (
    proposal        INTEGER NOT NULL PRIMARY KEY,
    shelf           TEXT    NOT NULL,
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
    origin_shelf    TEXT,
    origin_path     TEXT,
    origin_revision BIGINT,
    redacted        TEXT,
    decided_by      TEXT,
    decided_at_ms   BIGINT,
    reason          TEXT,
    revision        BIGINT
);

CREATE INDEX proposals_by_shelf ON proposals (shelf, standing, proposal);
CREATE INDEX proposals_by_digest ON proposals (digest) WHERE content IS NOT NULL;
CREATE INDEX proposals_by_content ON proposals (content) WHERE content IS NOT NULL;
CREATE INDEX proposals_by_origin ON proposals (origin_shelf, origin_path, origin_revision)
    WHERE origin_shelf IS NOT NULL;

CREATE TABLE comments (
    comment  INTEGER NOT NULL PRIMARY KEY,
    proposal BIGINT  NOT NULL,
    author   TEXT    NOT NULL,
    at_ms    BIGINT  NOT NULL,
    text     TEXT    NOT NULL
);

CREATE INDEX comments_by_proposal ON comments (proposal, comment);

-- Words of the newest versions, and the name of the shelf as a word of its own, so that
-- whoever sees few shelves pays for those. The index alone is kept: texts are in contents.
CREATE VIEW searched AS
    SELECT entries.entry AS entry, 'x' || hex(entries.shelf) AS shelf, entries.path AS path,
    CAST(contents.bytes AS TEXT) AS text
    FROM entries JOIN contents ON contents.content = entries.content
    WHERE entries.searchable = 1;

CREATE VIRTUAL TABLE search USING fts5(
    shelf, path, text, content = 'searched', content_rowid = 'entry',
    tokenize = 'unicode61 remove_diacritics 2'
);

UPDATE meta SET value = '4' WHERE name = 'format';
