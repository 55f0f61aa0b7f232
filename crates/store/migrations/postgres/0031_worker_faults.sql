-- What keeps work from a worker that is connected: a fault of its own, the assignments that it has lost in a row, and an
-- operator's maintenance. JSON each, empty where there is none.
ALTER TABLE worker_sessions ADD COLUMN fault TEXT;
ALTER TABLE worker_sessions ADD COLUMN lost TEXT;
ALTER TABLE worker_sessions ADD COLUMN maintenance TEXT;
-- What people tell a worker apart by, as it registered: a JSON object, empty where there is nothing.
ALTER TABLE worker_sessions ADD COLUMN labels TEXT;
