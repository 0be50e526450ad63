
-- What only PostgreSQL has: the words of the newest versions, and blobs, which lie in files
-- beside SQLite. A blob is whole once it has a row in blobs.

ALTER TABLE entries ADD COLUMN words TSVECTOR;
CREATE INDEX entries_by_word ON entries USING GIN (words);

CREATE TABLE blobs (
    digest     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    bytes      BIGINT NOT NULL,
    stored_ms  BIGINT NOT NULL
);

CREATE TABLE blob_pieces (
    digest TEXT COLLATE "C" NOT NULL,
    piece  BIGINT NOT NULL,
    bytes  BYTEA  NOT NULL,
    PRIMARY KEY (digest, piece)
);
