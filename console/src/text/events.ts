/** Events of a run in words, and what they say about its steps. */

import type { Schema } from '../api/client';
import { away, span } from './span';

/** The body of an event: a name of the catalogue, and what belongs to it. */
export interface EventBody {
  event: string;
  step?: number;
  steps?: number[];
  attempt?: number;
  session?: string;
  worker?: string;
  check?: string;
  error?: { class: string; code: string; message: string };
  eligible_at?: number;
  deadline_at?: number | null;
  signal?: string | null;
  key?: string | null;
  why?: string;
  reason?: string | null;
  person?: string;
  on_behalf_of?: string;
  approve?: boolean;
  fell?: { person: string; why: string }[];
  approval?: string;
  status?: string;
  receipt?: string;
  state?: string;
  done?: boolean;
  workflow?: string;
  version?: number;
  output_bytes?: number;
  verdict?: string;
}

export interface RunEvent {
  seq: number;
  at: number;
  body: EventBody;
  context: Schema['EventContext'];
}

export function read(view: Schema['EventView']): RunEvent {
  const said = view.payload as unknown as Partial<EventBody>;
  const step = view.position == null ? {} : { step: view.position };
  return { seq: view.seq, at: view.at, body: { ...said, ...step, event: view.type }, context: view.context };
}

const attempt = (body: EventBody) => (body.attempt !== undefined && body.attempt > 1 ? `, attempt ${body.attempt}` : '');

export function words({ at, body }: RunEvent): string {
  switch (body.event) {
    case 'session.created':
      return `started, with version ${body.version} of ${body.workflow}`;
    case 'session.offered':
      return `“${body.worker ?? 'a worker'}” is asked to take the run`;
    case 'session.assigned':
      return `assigned to ${body.worker === undefined ? 'a worker' : `“${body.worker}”`}`;
    case 'session.unassigned': {
      const who = body.worker === undefined ? 'no worker took the run' : `not “${body.worker}”’s${body.status === undefined ? '' : ` (${body.status})`}`;
      return `${who}: ${body.check === undefined ? '' : `${body.check}: `}${body.why ?? ''}`;
    }
    case 'session.paused':
      return `paused: ${body.reason ?? ''}`;
    case 'session.resumed':
      return 'resumed';
    case 'session.canceled':
      return body.done === false ? `being canceled: ${body.reason ?? ''}` : `canceled: ${body.reason ?? ''}`;
    case 'session.completed':
      return 'succeeded';
    case 'session.failed':
      return `ended as ${body.state ?? 'failed'}${body.reason == null ? '' : `: ${body.reason.replaceAll('_', ' ')}`}`;
    case 'execution.step.started':
      return `running${attempt(body)}`;
    case 'execution.step.completed':
      return 'done';
    case 'execution.step.failed':
      return `failed${attempt(body)}: ${body.error?.message ?? ''}`;
    case 'execution.step.retrying':
      return `attempt ${body.attempt} failed: ${body.error?.message ?? ''}; again after ${span((body.eligible_at ?? at) - at)}`;
    case 'execution.step.ready':
      return body.why === 'rolled_back' ? 'what it did is undone' : `ready: ${(body.why ?? '').replaceAll('_', ' ')}`;
    case 'execution.step.waiting':
      return body.signal == null
        ? `waiting${body.deadline_at == null ? '' : `, goes on ${away(body.deadline_at, at)}`}`
        : `waiting for the signal ${body.signal}`;
    case 'execution.step.in_doubt':
      return 'in doubt: an effect was sent, and its outcome is unknown';
    case 'execution.step.skipped':
      return `skipped: ${body.why ?? ''}`;
    case 'execution.step.canceled':
      return 'canceled';
    case 'execution.rollback.started':
      return `undoing ${body.steps?.length === 1 ? 'one step' : `${body.steps?.length ?? 0} steps`}`;
    case 'execution.rollback.completed':
      return 'everything is undone';
    case 'approval.requested':
      return 'people are asked for approval';
    case 'approval.voted':
      return `${body.person}${body.on_behalf_of === undefined ? '' : ` (for ${body.on_behalf_of})`} ${body.approve === true ? 'approved' : 'rejected'}${(body.fell ?? []).map((fell) => `; the yes of ${fell.person} counts no more: ${fell.why}`).join('')}`;
    case 'approval.expired':
      return 'the time to answer has passed; it stays open';
    case 'approval.resolved':
      return `the approval is ${body.status}`;
    case 'policy.decided':
      return body.worker === undefined
        ? `policy says ${(body.verdict ?? '').replaceAll('_', ' ')}`
        : `policy refuses the worker “${body.worker}”`;
    case 'receipt.deduplicated':
      return 'another run has had the effect; it was not performed again';
    case 'receipt.recorded':
      return body.state === 'intent' ? 'effect about to be sent' : `effect ${(body.state ?? '').replaceAll('_', ' ')}`;
    default:
      return body.event;
  }
}
