-- A name by which people and tasks know an endpoint, where one was given: `webhook:NAME` is a destination of messages.
ALTER TABLE outbound_endpoints ADD COLUMN name TEXT;
CREATE UNIQUE INDEX outbound_endpoints_name ON outbound_endpoints (tenant_id, name) WHERE name IS NOT NULL;
