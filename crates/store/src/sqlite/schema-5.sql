-- Format 5: what entries take. PostgreSQL has other words for the operators on text.

-- What is kept of whom: `all`, an owner of shelves as `person:ada`, or `session:ID`, of
-- which nothing is ever taken away.
CREATE TABLE usage (
    holder   TEXT   NOT NULL PRIMARY KEY,
    bytes    BIGINT NOT NULL,
    entries  BIGINT NOT NULL,
    versions BIGINT NOT NULL
);

INSERT INTO usage (holder, bytes, entries, versions)
    SELECT holder, SUM(bytes), SUM(entries), SUM(versions) FROM (
        SELECT substr(shelf, instr(shelf, '/') + 1) AS holder, bytes, 0 AS entries, 1 AS versions
        FROM versions WHERE content IS NOT NULL
        UNION ALL SELECT substr(shelf, instr(shelf, '/') + 1), bytes, 0, 1
        FROM proposals WHERE content IS NOT NULL
        UNION ALL SELECT substr(shelf, instr(shelf, '/') + 1), 0, 1, 0
        FROM entries WHERE state < 2)
    GROUP BY holder;

INSERT INTO usage (holder, bytes, entries, versions)
    SELECT 'all', COALESCE(SUM(bytes), 0), COALESCE(SUM(entries), 0), COALESCE(SUM(versions), 0)
    FROM usage;

INSERT INTO usage (holder, bytes, entries, versions)
    SELECT 'session:' || session, SUM(bytes), 0, COUNT(*) FROM versions
    WHERE session IS NOT NULL GROUP BY session;

UPDATE meta SET value = '5' WHERE name = 'format';
