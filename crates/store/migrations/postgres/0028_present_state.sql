-- What an action would change, beside what was there when people were asked. Shown to them, not signed by their votes.
ALTER TABLE approvals ADD COLUMN present_state TEXT;
