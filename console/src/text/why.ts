/** Why a run stands where it stands, in one sentence. The words are the command line's. */

import type { Schema } from '../api/client';
import { away, span, utc } from './span';

type Cause = Schema['Cause'];

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`;
const by = (person: string | null | undefined) => (person == null ? '' : ` by ${person}`);

/** Causes that say what has stopped the run; a pause that followed, and the step's failure, say less. */
const EXACT: Cause['cause'][] = ['denied', 'doubt', 'worker_lost', 'assigning'];

/** The causes that are worth a sentence. A pause that a person asked for always is. */
export function toldCauses(causes: readonly Cause[]): Cause[] {
  if (!causes.some((cause) => EXACT.includes(cause.cause))) return [...causes];
  return causes.filter((cause) => cause.cause !== 'step_failed' && !(cause.cause === 'paused' && cause.by == null));
}

/** `over`: the run has ended. */
export function sentence(cause: Cause, now: number, over = false): string {
  switch (cause.cause) {
    case 'running': {
      const since = cause.since == null ? '' : ` for ${span(now - cause.since)}`;
      const limit = cause.times_out_at == null ? '' : `; it times out ${away(cause.times_out_at, now)}`;
      const heard = cause.last_heartbeat_at == null ? '' : ` It was last heard of ${away(cause.last_heartbeat_at, now)}`;
      const late = cause.expected_every_ms == null ? '' : `${heard}, and it should be every ${span(cause.expected_every_ms)}: it may be dead, frozen or cut off.`;
      return `${cause.worker == null ? 'A worker' : `The worker “${cause.worker}”`} has been running attempt ${cause.attempt}${since}${limit}.${late}`;
    }
    case 'silent': {
      const back = cause.lease_expires_at == null ? '' : ` The step is taken back ${away(cause.lease_expires_at, now)}, unless it comes back.`;
      return `The worker${cause.worker == null ? '' : ` “${cause.worker}”`} that has attempt ${cause.attempt} was last heard of ${away(cause.last_heartbeat_at, now)}.${back}`;
    }
    case 'orphaned':
      return `The worker that has attempt ${cause.attempt} is silent. A server takes the step back within seconds.`;
    case 'unclaimed':
      return unclaimed(cause, now);
    case 'assigning':
      return assigning(cause, now, over);
    case 'passed_over':
      return cause.workers.map(skipped).join(' ');
    case 'worker_lost':
      return `The worker that had the run was lost while it ran “${cause.step}”, and the run’s directory with it.`;
    case 'unknown_task':
      return `No worker on the queue “${cause.queue}” knows the task “${cause.task}”. It is offered again ${away(cause.next_attempt_at, now)}.`;
    case 'backoff':
      return `The last attempt failed (${cause.failures} of ${cause.attempts_max}): ${cause.error.message}. The next one starts ${away(cause.next_attempt_at, now)}.`;
    case 'signal': {
      const until = cause.until == null ? '; it waits for ever' : `; it gives up ${away(cause.until, now)}`;
      return `It has waited ${span(now - cause.since)} for the signal “${cause.signal}” with the key “${cause.key}”${until}.`;
    }
    case 'timer':
      return `It goes on by itself ${away(cause.until, now)}.`;
    case 'settling':
      return `A lost attempt, or one that was broken off, may have sent what has not arrived yet. The step must not overtake it, and begins ${away(cause.until, now)}.`;
    case 'approval':
      return approval(cause, now);
    case 'denied':
      return `The approval was ${cause.state}; an operator has to say how to go on.`;
    case 'doubt':
      return `An effect${cause.step == null ? '' : ` of step “${cause.step}”`} was sent and its outcome is unknown. Look in the system it was sent to; it is never repeated blindly.`;
    case 'paused':
      return cause.by == null
        ? `It stopped by itself ${away(cause.since, now)}, and no person has paused it: ${cause.reason}`
        : `It was paused by ${cause.by} ${away(cause.since, now)}: ${cause.reason}`;
    case 'step_failed':
      return `Step “${cause.step}” has failed: ${cause.error == null ? 'no error was recorded' : cause.error.message}.`;
    case 'canceling':
      return `It was canceled${by(cause.by)} ${away(cause.since, now)}; the running attempt has not acknowledged yet.`;
    case 'rolling_back':
      return `What it did is being undone: ${cause.undone} of ${plural(cause.undone + cause.left, 'step')} so far.`;
    case 'throttled': {
      const whose = cause.limit_of === 'workflow' ? 'its workflow' : 'the tenant';
      const what =
        cause.limit === 'concurrency'
          ? `steps of ${whose} that run at once (at most ${cause.max})`
          : `runs of ${whose} that start in a minute (at most ${cause.max})`;
      const then = cause.until == null ? 'as soon as one of them ends' : away(cause.until, now);
      return `The limit on ${what} holds it back; it goes on by itself, ${then}.`;
    }
    case 'queued':
      return cause.held_by == null
        ? `It is queued for “${cause.subject}”, which is free, and starts in a moment.`
        : `It is queued: another run is active for “${cause.subject}”.`;
    case 'restored':
      return 'It came back with a backup, and may have done more than the store knows. Look at its effects first.';
    case 'ended':
      return (
        `It ended ${away(cause.at, now)}${cause.reason == null ? '' : `: ${cause.reason.replaceAll('_', ' ')}`}.` +
        (cause.approvals ?? []).map(decided).join('')
      );
    default:
      // A server that is newer than this page.
      return `It waits: ${(cause as { cause: string }).cause.replaceAll('_', ' ')}.`;
  }
}

const INSTANTS: Record<string, string> = {
  since: 'since',
  at: 'at',
  until: 'until',
  expires_at: 'expires',
  next_attempt_at: 'next attempt',
  times_out_at: 'times out',
  last_heartbeat_at: 'last heard of',
  lease_expires_at: 'taken back',
};

/** The instants that the sentence tells as spans, in UTC: for the pointer. */
export function instants(cause: Cause): string | undefined {
  const told = Object.entries(cause).flatMap(([name, value]) => (name in INSTANTS && typeof value === 'number' ? [`${INSTANTS[name]} ${utc(value)}`] : []));
  return told.length === 0 ? undefined : told.join('\n');
}

/** What became of an approval, by whom, and which rule had asked for it. */
function decided(approval: NonNullable<Extract<Cause, { cause: 'ended' }>['approvals']>[number]): string {
  const people = approval.state === 'rejected' ? (approval.rejected_by ?? []) : (approval.approved_by ?? []);
  const by = people.length === 0 ? '' : ` by ${people.join(' and ')}`;
  const done = approval.state === 'expired' ? 'was not decided in time' : `was ${approval.state}${by}`;
  return ` Step “${approval.step}” ${done}${approval.asked == null ? '' : ` (${approval.asked})`}.`;
}

/** Why a worker is passed over, where the reason's own name does not tell people. */
const SKIPPED: Record<string, string> = {
  environment: 'out of its bounds',
  segment: 'out of its bounds',
  profile: 'out of its bounds',
  controls: 'missing controls',
  several_tenants: 'several tenants',
  labels: 'its labels',
  latency: 'too far away',
  recently_offline: 'recently offline',
};

/** A worker that is connected and is passed over, and why. */
function skipped(worker: Extract<Cause, { cause: 'passed_over' }>['workers'][number]): string {
  const reason = SKIPPED[worker.reason] ?? worker.reason;
  const check = worker.check == null ? '' : `: ${worker.check}`;
  const since = worker.since == null ? '' : ` since ${utc(worker.since)}`;
  const why = worker.why == null ? '' : `: ${worker.why}`;
  const run = worker.run == null ? '' : ` (${worker.run})`;
  // An operator began it, and can end it.
  const ends = worker.reason === 'maintenance' ? ' An operator can end that among the workers.' : '';
  return `“${worker.worker}” is skipped: ${reason}${since}${check}${why}${run}.${ends}`;
}

/** That workers elsewhere are given nothing new, and what changes that. */
function flagOff(what: string): string {
  return ` worker_orchestration.enabled is off, so that only the server’s own worker ${what}; an admin switches it on with “interlock flag set worker_orchestration.enabled true”.`;
}

function unclaimed(cause: Extract<Cause, { cause: 'unclaimed' }>, now: number): string {
  const task = cause.task == null ? '' : ` the task “${cause.task}”`;
  const needs = cause.needs ?? [];
  const can = needs.length > 0 ? `has ${needs.join(' and ')}` : 'can do it';
  const has = cause.task == null ? can : needs.length > 0 ? `has that task and ${needs.join(' and ')}` : 'has that task';
  const workers =
    cause.workers == null
      ? `it is on the queue “${cause.queue}”`
      : cause.workers === 0
        ? cause.only_embedded === true
          ? `no worker inside a server takes the queue “${cause.queue}” and ${has}`
          : `no registered worker of the queue “${cause.queue}” ${has}`
        : `${plural(cause.workers, 'worker')} of the queue “${cause.queue}” may have it, and ${cause.workers === 1 ? 'is' : 'are'} busy`;
  const refused = (cause.refused ?? []).map((worker) => ` The policy refused the worker “${worker.worker}”: ${worker.why}.`);
  const off = cause.only_embedded === true ? flagOff('takes steps') : '';
  return `It has waited ${span(now - cause.since)} for a worker to run${task}: ${workers}.${refused.join('')}${off}`;
}

function assigning(cause: Extract<Cause, { cause: 'assigning' }>, now: number, over: boolean): string {
  const until = cause.until == null || cause.waits === true ? '' : `; this attempt ends ${away(cause.until, now)}`;
  return first() + (over ? '' : held()) + failures(cause);

  function first(): string {
    if (over) return 'No worker has taken the run.';
    if (cause.asked != null) {
      return `The worker “${cause.asked}” is asked to take the run${cause.until == null ? '' : `, and answers ${away(cause.until, now)} at the latest`}.`;
    }
    return cause.workers === 0
      ? `No worker has taken the run, and no other worker of the queue “${cause.queue}” has ${(cause.needs ?? []).join(' and ')}${until}.`
      : `A worker is looked for that takes the run${until}.`;
  }

  /** What an operator has done that keeps workers from the run. */
  function held(): string {
    const left = cause.left_by == null ? '' : ` “${cause.left_by}”, which had it, has left in good order.`;
    const off = cause.only_embedded === true ? flagOff('may take it') : '';
    return left + off + (cause.waits === true ? ' The run waits, however long that takes: no attempt is counted.' : '');
  }
}

/** Why each attempt to assign the run came to nothing; attempts with the same reason are told together. */
function failures(cause: Extract<Cause, { cause: 'assigning' }>): string {
  const attempts = new Map<string, number[]>();
  for (const [index, failure] of (cause.failures ?? []).entries()) {
    const reason = [failure.worker, failure.check, failure.why].filter((part) => part != null).join(': ');
    attempts.set(reason, [...(attempts.get(reason) ?? []), index + 1]);
  }
  const told = [...attempts].map(([reason, numbers]) => {
    const which = numbers.length === 1 ? `Attempt ${numbers[0]}` : `Attempts ${numbers.slice(0, -1).join(', ')} and ${numbers.at(-1)}`;
    return ` ${which} of ${cause.attempts_max}: ${reason}.`;
  });
  return told.join('');
}

function approval(cause: Extract<Cause, { cause: 'approval' }>, now: number): string {
  const missing = Math.max(0, cause.needed - cause.approved_by.length);
  const whom = cause.approvers.length === 0 ? 'anybody who may approve' : `a member of ${cause.approvers.join(', ')}`;
  const already = cause.approved_by.length === 0 ? '' : ` (${cause.approved_by.join(', ')} approved already)`;
  const fallen = (cause.fallen ?? []).map((fell) => ` The yes of ${fell.person} counts no more: ${fell.why}.`).join('');
  const allowed = cause.self_approval === true;
  const not = allowed || cause.excluded.length === 0 ? '' : `; not ${cause.excluded.join(', ')}, who started or directed it, or wrote its workflow`;
  const self = allowed ? ` ${cause.excluded.join(', ')} started or directed it and may approve it all the same: the tenant lets people approve their own runs.` : '';
  return `It waits for ${missing} more approval${missing === 1 ? '' : 's'} from ${whom}${already}${not}.${self}${fallen} It expires ${away(cause.expires_at, now)}.`;
}
