-- What retention needs to know of plans and lanes, so that it can remove those that nobody uses any more.

-- No run of the plan has an id, or was started, an hour past this instant or later: starts see to that in their own
-- commit, by raising it once it is that old. So the runs of an old plan are looked for among the old ids only.
-- Plans of before get a week more: a server of the release before may go on for a while, and does not raise it.
ALTER TABLE plans ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
UPDATE plans SET used_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 604800000;
CREATE INDEX plans_by_use ON plans (used_at);

-- When the server that commits through the lane last said that it lives; NULL until somebody has looked.
ALTER TABLE lanes ADD COLUMN seen_at BIGINT;
