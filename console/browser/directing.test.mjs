/** Runs that people direct, in a real browser. Much of it waits for leases to run out, and so it runs beside the other tests. */

import { lostTests } from './lost.mjs';
import { suite } from './suite.mjs';
import { undoTests } from './undo.mjs';
import { verbTests } from './verbs.mjs';

suite(verbTests, undoTests, lostTests);
