-- The name that its sender has given a signal is one among the signals of a scope: 'tenant' (signals by key), 'run:ID' (those for
-- that run alone), 'request' (named by an idempotency key), 'message' (messages of tasks). Signals that were stored
-- before, and those of servers of earlier releases, have theirs in `source_id`.
ALTER TABLE signals ADD COLUMN source_scope TEXT;
ALTER TABLE signals ADD COLUMN source_name TEXT;
-- What the name stands for: a hash of the type, the key, the run and the payload. Another signal under the name is refused.
ALTER TABLE signals ADD COLUMN fingerprint BLOB;
CREATE UNIQUE INDEX signals_named ON signals (tenant_id, source_scope, source_name) WHERE source_name IS NOT NULL;
