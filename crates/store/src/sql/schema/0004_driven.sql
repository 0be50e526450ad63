-- What is known of a session beside its journal: who drives it, and whether a server is to.
CREATE TABLE driven (
    session  TEXT   NOT NULL PRIMARY KEY,
    -- The installation that drove it last, whose sandboxes it has; 0 where that is not known.
    server   BIGINT NOT NULL DEFAULT 0,
    -- The process that holds it now, as long as that one lives.
    process  BIGINT,
    -- From when on a server is to drive it, in milliseconds since 1970; none while it waits.
    due_ms   BIGINT,
    -- How often somebody asked for that.
    wakes    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX driven_by_due ON driven (due_ms) WHERE due_ms IS NOT NULL;

UPDATE meta SET value = '10' WHERE name = 'format';
