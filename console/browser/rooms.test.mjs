/** Every room of the console in a real browser. It takes as long as all the other tests, and so it runs beside them. */

import { roomTests } from './rooms.mjs';
import { suite } from './suite.mjs';

suite(roomTests);
