-- What a worker said that it can do: the names of its tasks, and its capabilities; lists in JSON. NULL: it did not say.
ALTER TABLE worker_sessions ADD COLUMN tasks TEXT;
ALTER TABLE worker_sessions ADD COLUMN capabilities TEXT;
-- Claims that its last heartbeat did not list, and since when; JSON. Whichever server gets the next one goes on counting.
ALTER TABLE worker_sessions ADD COLUMN unlisted TEXT;
