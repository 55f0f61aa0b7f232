-- What exactly is approved: the bound action, as people are shown it. NULL for a gate of the workflow itself.
ALTER TABLE approvals ADD COLUMN action TEXT;
