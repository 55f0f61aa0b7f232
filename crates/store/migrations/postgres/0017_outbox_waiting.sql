-- Where messages wait, so that the relay goes from one destination to the next however long their backlogs are.
CREATE INDEX outbox_waiting ON outbox (tenant_id, destination, next_at) WHERE delivered_at IS NULL AND dead_at IS NULL;
-- What was given up, for whoever looks for it.
CREATE INDEX outbox_dead ON outbox (tenant_id, outbox_id) WHERE dead_at IS NOT NULL;
