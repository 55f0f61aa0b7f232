-- Runs that are offered to one worker session as a whole: the worker's own name, and the check that failed there.
ALTER TABLE assignments ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE assignments ADD COLUMN failed_check TEXT;
-- What a session was offered or has: for its heartbeats, and for the reaper when it is over.
CREATE INDEX assignments_live ON assignments (session_id, offered_at) WHERE ended_at IS NULL;
