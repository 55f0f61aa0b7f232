-- What an approval permits: to pass a gate, to run a guarded step once more, or to go on without a step.
ALTER TABLE approvals ADD COLUMN purpose TEXT NOT NULL DEFAULT 'gate' CHECK (purpose = 'gate' OR purpose = 'retry' OR purpose = 'skip');
