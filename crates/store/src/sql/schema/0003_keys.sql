-- What people and their programs show to be let in: the digest of each key, never the key.
CREATE TABLE keys (
    id           TEXT   NOT NULL PRIMARY KEY,
    digest       TEXT   NOT NULL UNIQUE,
    kind         TEXT   NOT NULL,
    person       TEXT   NOT NULL,
    label        TEXT   NOT NULL,
    created_ms   BIGINT NOT NULL,
    expires_ms   BIGINT NOT NULL
);
CREATE INDEX keys_expire ON keys (expires_ms);

UPDATE meta SET value = '9' WHERE name = 'format';
