-- Format 3: accounts above the session. Also valid for PostgreSQL.

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

UPDATE meta SET value = '3' WHERE name = 'format';
