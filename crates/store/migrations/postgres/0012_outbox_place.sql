-- The place of a message among those of its run to one destination. Ids sort by the instant of a clock, and within one
-- millisecond by chance. What is here already keeps its order, before all that comes.
ALTER TABLE outbox ADD COLUMN place BIGINT NOT NULL DEFAULT 0;
DROP INDEX outbox_order;
CREATE INDEX outbox_order ON outbox (tenant_id, run_id, destination, place, outbox_id);
