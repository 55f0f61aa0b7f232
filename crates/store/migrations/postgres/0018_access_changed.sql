-- When somebody else last changed what an account may do, or how its person gets in, and who that was: whoever is excluded
-- from a decision must not bring an account of their own making to it.
ALTER TABLE users ADD COLUMN access_changed_at BIGINT;
ALTER TABLE users ADD COLUMN access_changed_by TEXT;
