-- Which run has an effect that counts as the same in the whole tenant. The identity is a hash of all that makes it the same; of those
-- with one identity and number there is one, so that of many runs at once one has it.
CREATE TABLE effect_holds (
    tenant_id BYTEA NOT NULL,
    identity BYTEA NOT NULL,
    number BIGINT NOT NULL,
    run_id BYTEA NOT NULL,
    receipt_id BYTEA NOT NULL,
    held_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, identity, number)
);
CREATE INDEX effect_holds_of_run ON effect_holds (tenant_id, run_id);
