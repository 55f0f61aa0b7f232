/** Starts a run, watches it until it waits for approval, approves it as a person, and watches it to its end. */

import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

const { INTERLOCK_URL: baseUrl = '', INTERLOCK_KEY: key = '' } = process.env;
const as = (token: string) => createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
const api = as(key);
const password = 'correct horse battery';
const source = 'name: ship\nsteps:\n  - { id: sure, approval: { message: Ship it? } }\n  - { id: done, transform: shipped }\n';

function must<T>({ data, error }: { data?: T; error?: components['schemas']['Problem'] }): T {
  if (data === undefined) throw new Error(`${error?.code}: ${error?.detail}`);
  return data;
}

must(await api.POST('/api/v1/workflows', { body: { source } }));
must(await api.POST('/api/v1/users', { body: { name: 'ada', roles: ['approver', 'operator'], password } }));
const { run_id: run } = must(await api.POST('/api/v1/runs', { body: { workflow: 'ship', subject: 'from TypeScript' } }));

/** Follows the run's events until one of a type comes. */
async function until(type: string, last_event_id: string): Promise<string> {
  for (;;) {
    const query = { last_event_id, wait_ms: 10_000 };
    const page = must(await api.GET('/api/v1/runs/{run}/events', { params: { path: { run }, query } }));
    const found = page.events.find((event) => event.type === type);
    if (found !== undefined) return found.id;
    last_event_id = page.last_event_id;
  }
}

const asked = await until('approval.requested', '0');
const person = as(must(await api.POST('/api/v1/auth/token', { body: { by: 'password', name: 'ada', password } })).token);
const open = must(await person.GET('/api/v1/approvals', { params: { query: { run } } }));
const [{ approval, digest } = { approval: '', digest: '' }] = open.approvals;
must(await person.POST('/api/v1/approvals/{approval}/vote', { params: { path: { approval } }, body: { approve: true, digest } }));
await until('session.completed', asked);
console.log(`the run has ${must(await api.GET('/api/v1/runs/{run}', { params: { path: { run } } })).state}`);
