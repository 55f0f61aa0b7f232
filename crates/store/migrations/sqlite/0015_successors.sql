-- Which run was made from a run that has ended: one at a time, so that no two of them perform the same effects.
CREATE TABLE successors (
    tenant_id BLOB NOT NULL,
    run_id BLOB NOT NULL,
    continued_by BLOB NOT NULL,
    PRIMARY KEY (tenant_id, run_id)
) STRICT, WITHOUT ROWID;

INSERT INTO successors (tenant_id, run_id, continued_by)
    SELECT tenant_id, resumed_from, max(run_id) FROM runs WHERE resumed_from IS NOT NULL
    GROUP BY tenant_id, resumed_from;
