-- Which run was made from a run that has ended: one at a time, so that no two of them perform the same effects.
CREATE TABLE successors (
    tenant_id BYTEA NOT NULL,
    run_id BYTEA NOT NULL,
    continued_by BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, run_id)
);

INSERT INTO successors (tenant_id, run_id, continued_by)
    SELECT DISTINCT ON (tenant_id, resumed_from) tenant_id, resumed_from, run_id FROM runs
    WHERE resumed_from IS NOT NULL ORDER BY tenant_id, resumed_from, run_id DESC;
