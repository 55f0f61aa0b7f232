-- Lists of ids do not shrink: compressing them only costs time.
ALTER TABLE commit_groups ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE tenant_feed ALTER COLUMN entries SET STORAGE EXTERNAL;
