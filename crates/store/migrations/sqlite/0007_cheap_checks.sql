-- SQLite builds a temporary table for every `x IN (…)` of more than two values, also in a CHECK, and does so for each row
-- that is written: a third of the writer's time went into that. The same checks as comparisons cost nothing to speak of.
-- Only the text of the checks changes, so the rows stay where they are.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''succeeded'', ''failed'', ''canceled'')',
    'state = ''succeeded'' OR state = ''failed'' OR state = ''canceled''')
WHERE type = 'table' AND name = 'runs';

UPDATE sqlite_schema SET sql = replace(sql,
    'control IN (''active'', ''paused'', ''canceling'', ''canceled'')',
    'control = ''active'' OR control = ''paused'' OR control = ''canceling'' OR control = ''canceled''')
WHERE type = 'table' AND name = 'run_live';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''pending'', ''running'', ''waiting_approval'', ''waiting_signal'', ''paused'',
        ''rolling_back'')',
    'state = ''pending'' OR state = ''running'' OR state = ''waiting_approval'' OR state = ''waiting_signal'' OR
        state = ''paused'' OR state = ''rolling_back''')
WHERE type = 'table' AND name = 'run_live';

UPDATE sqlite_schema SET sql = replace(sql,
    'step_state IN (''pending'', ''ready'', ''running'', ''waiting_approval'',
        ''waiting_signal'', ''in_doubt'', ''succeeded'', ''skipped'', ''failed'', ''canceled'', ''rolled_back'')',
    'step_state = ''pending'' OR step_state = ''ready'' OR step_state = ''running'' OR
        step_state = ''waiting_approval'' OR step_state = ''waiting_signal'' OR step_state = ''in_doubt'' OR
        step_state = ''succeeded'' OR step_state = ''skipped'' OR step_state = ''failed'' OR step_state = ''canceled'' OR
        step_state = ''rolled_back''')
WHERE type = 'table' AND name = 'run_live';

UPDATE sqlite_schema SET sql = replace(sql,
    'done_state IN (''succeeded'', ''skipped'', ''failed'', ''canceled'', ''rolled_back'', ''pending'')',
    'done_state = ''succeeded'' OR done_state = ''skipped'' OR done_state = ''failed'' OR done_state = ''canceled'' OR
        done_state = ''rolled_back'' OR done_state = ''pending''')
WHERE type = 'table' AND name = 'journal';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''requested'', ''approved'', ''rejected'', ''expired'', ''canceled'')',
    'state = ''requested'' OR state = ''approved'' OR state = ''rejected'' OR state = ''expired'' OR
        state = ''canceled''')
WHERE type = 'table' AND name = 'approvals';

UPDATE sqlite_schema SET sql = replace(sql,
    'effect IN (''read'', ''idempotent'', ''keyed'', ''unsafe'')',
    'effect = ''read'' OR effect = ''idempotent'' OR effect = ''keyed'' OR effect = ''unsafe''')
WHERE type = 'table' AND name = 'receipts';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''intent'', ''succeeded'', ''failed'', ''in_doubt'')',
    'state = ''intent'' OR state = ''succeeded'' OR state = ''failed'' OR state = ''in_doubt''')
WHERE type = 'table' AND name = 'receipts';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''processing'', ''completed'', ''failed'')',
    'state = ''processing'' OR state = ''completed'' OR state = ''failed''')
WHERE type = 'table' AND name = 'idempotency';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''online'', ''draining'', ''errored'', ''offline'')',
    'state = ''online'' OR state = ''draining'' OR state = ''errored'' OR state = ''offline''')
WHERE type = 'table' AND name = 'worker_sessions';

UPDATE sqlite_schema SET sql = replace(sql,
    'state IN (''offered'', ''acked'', ''released'', ''refused'', ''expired'', ''lost'')',
    'state = ''offered'' OR state = ''acked'' OR state = ''released'' OR state = ''refused'' OR state = ''expired'' OR
        state = ''lost''')
WHERE type = 'table' AND name = 'assignments';

PRAGMA writable_schema = RESET;
