-- Whether what became of an earlier try of an effect was never learned, which a later try that was refused does not settle.
ALTER TABLE receipts ADD COLUMN unsettled INTEGER NOT NULL DEFAULT 0 CHECK (unsettled IN (0, 1));
