-- The lists of people who must agree as well as `approvers`, each with how many of them. NULL where there are none, and where it was
-- asked before this was kept.
ALTER TABLE approvals ADD COLUMN and_from TEXT;
