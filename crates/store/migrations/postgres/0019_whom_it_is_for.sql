-- A signal that is sent to a run is for that run alone, whoever else waits for its type and key.
ALTER TABLE signals ADD COLUMN run_id BYTEA;
-- Whoever gave a webhook's address its present secret could have sent what comes with it.
ALTER TABLE inbound_endpoints ADD COLUMN secret_by TEXT;
-- The same of the key with which a bulk job was asked for.
ALTER TABLE bulk_jobs ADD COLUMN maker TEXT;
