/** The one way to the server: the public API, typed by its own description. */

import createClient, { type Middleware } from 'openapi-fetch';
import type { components, paths } from '../../generated/schema';
import { exactly, written } from '../text/exact';

export type Schema = components['schemas'];
export type Run = Schema['RunView'];
export type RunState = Schema['RunState'];
export type Step = Schema['StepView'];
export type StepState = Schema['StepState'];
export type Approval = Schema['ApprovalView'];
export type Me = Schema['Me'];
export type Problem = Schema['Problem'];

/** What the server refused, in its own words. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** The server gave no answer at all. */
export class Unreachable extends Error {
  constructor() {
    super('The server does not answer. What you see may be out of date; this page tries again by itself.');
  }
}

let csrf: string | undefined;

/** The token that writes carry beside the cookie; `/me` gives it. */
export function setCsrf(token: string | undefined): void {
  csrf = token;
}

/** The sign-in page, which leads back to here. */
export function signInAddress(): string {
  return `/login?next=${encodeURIComponent(window.location.pathname + window.location.search)}`;
}

export function signInAgain(): void {
  window.location.assign(signInAddress());
}

const guarded: Middleware = {
  onRequest({ request }) {
    if (request.method !== 'GET' && csrf !== undefined) request.headers.set('x-interlock-csrf', csrf);
    return request;
  },
  onResponse({ response }) {
    if (response.status === 401) signInAgain();
    return exactly(response);
  },
  onError() {
    return new Unreachable();
  },
};

export const api = createClient<paths, 'application/json'>({ baseUrl: '/', bodySerializer: (body) => written(body) });
api.use(guarded);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer, or what was wrong as an error. */
export async function must<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (response.ok) return data as T;
  throw new Refusal(problemOf(error, response.status));
}

function problemOf(error: unknown, status: number): Problem {
  if (typeof error === 'object' && error !== null && 'detail' in error && 'code' in error) return error as Problem;
  const detail = `The server answered ${status} without saying why. Try again; if it goes on, look at its log.`;
  return { type: 'about:blank', title: 'No reason given', status, detail, code: 'UNKNOWN' };
}

/** A request whose address is known only now: one that a second admin has agreed to, made again as it was. */
export async function again(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<unknown> {
  const request = new Request(new URL(path, window.location.origin), {
    method,
    headers: { 'content-type': 'application/json', ...headers, ...(csrf !== undefined && { 'x-interlock-csrf': csrf }) },
    body: body === null ? undefined : JSON.stringify(body),
  });
  const response = await fetch(request).catch(() => {
    throw new Unreachable();
  });
  const said: unknown = await response.json().catch(() => undefined);
  if (response.status === 401) signInAgain();
  if (!response.ok) throw new Refusal(problemOf(said, response.status));
  return said;
}

/** A fresh name for one intention of a person: however often it is sent, it counts once. */
export function intention(): { 'Idempotency-Key': string } {
  return { 'Idempotency-Key': crypto.randomUUID() };
}
