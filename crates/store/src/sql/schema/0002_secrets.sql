-- Secrets, each as the gate sealed it: what it is for is in the text, its value nobody else can
-- read.
CREATE TABLE secrets (
    organisation TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    sealed       TEXT   NOT NULL,
    set_by       TEXT   NOT NULL,
    created_ms   BIGINT NOT NULL,
    changed_ms   BIGINT NOT NULL,
    PRIMARY KEY (organisation, name)
);

UPDATE meta SET value = '8' WHERE name = 'format';
