-- The policy bundle that allowed an effect, by its hash; and the name of the key without a person that asked for a bulk job.
ALTER TABLE receipts ADD COLUMN bundle BLOB;
ALTER TABLE bulk_jobs ADD COLUMN key_name TEXT;
