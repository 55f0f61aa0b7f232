/** Directives to a run. Each dialog says what will happen before it does. */

import { useState, type ComponentType } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Run, type Schema, type Step } from '../../api/client';
import { Area, Check, FormDialog, Input, json, Reason, Select, text } from '../../parts/form';
import { Loaded } from '../../parts/loaded';
import { Prose, Text } from '../../parts/text';
import { visible } from '../../text/visible';
import { at, go } from '../../route/router';
import { isBeingUndone, isOver, type Action } from './actions';
import { rollbackQuery, whyQuery } from './query';

export const VERBS: Record<Action, string> = {
  approve: 'Approve', reject: 'Reject', resolve: 'Settle the doubt', retry: 'Retry', reassign: 'Reassign', resume: 'Resume', skip: 'Skip the step',
  signal: 'Send the signal', rollback: 'Roll back', restart: 'Restart', pause: 'Pause', cancel: 'Cancel',
};

interface Props {
  run: Run;
  steps: Step[];
  close: () => void;
}

/** Where the run now stands, or the run that was made from one that had ended. */
type Answer = Schema['Standing'] | Schema['Started'];

/** Sends a directive, and follows the run to wherever it now stands. `saidWhereAsked` is said where people are asked first. */
function useDirective(run: Run) {
  const queries = useQueryClient();
  return async (asked: Promise<{ data?: Answer; error?: unknown; response: Response }>, said: string, saidWhereAsked = said) => {
    const standing = await must(asked);
    void queries.invalidateQueries({ queryKey: ['run', run.run_id] });
    if ('needs' in standing && standing.needs != null) {
      return `${standing.needs.approved} of ${standing.needs.needed} people have agreed; the others vote on the approval.`;
    }
    if (standing.run_id !== run.run_id) {
      go(at('runs', standing.run_id));
      return 'A new run has taken over.';
    }
    return 'state' in standing && standing.state === 'waiting_approval' ? saidWhereAsked : said;
  };
}

/** States in which a step may have done something. */
const UNDOABLE: Step['state'][] = ['succeeded', 'failed', 'in_doubt'];

const of = (run: Run) => ({ params: { path: { run: run.run_id } } });

function Cancel({ run, steps, close }: Props) {
  const direct = useDirective(run);
  const undoable = useQuery(rollbackQuery(run.run_id, '')).data?.undone.length ?? 0;
  const undoing = isBeingUndone(steps);
  const [back, setBack] = useState(false);
  return (
    <FormDialog
      title="Cancel this run"
      verb={back ? 'Undo and cancel' : 'Cancel the run'}
      danger
      close={close}
      act={(form) => direct(api.POST('/api/v1/runs/{run}/cancel', { ...of(run), body: { reason: text(form, 'reason'), rollback: back } }), 'The run is being canceled.')}
    >
      <p>
        Nothing further starts. A step that is running is told to stop. {undoing && 'What is not undone yet stays as it is. '}This cannot be taken back.
      </p>
      {undoable > 0 && !undoing && <Check label="Undo first what it has done" checked={back} onChange={(event) => setBack(event.target.checked)} />}
      {back && <Undone run={run} from="" />}
      <Reason />
    </FormDialog>
  );
}

function Rollback({ run, steps, close }: Props) {
  const direct = useDirective(run);
  const [from, setFrom] = useState('');
  const [key] = useState(intention);
  const over = isOver(run.state);
  const done = steps.filter((step) => step.kind !== 'rollback' && UNDOABLE.includes(step.state));
  const nothing = useQuery(rollbackQuery(run.run_id, '')).data?.undone.length === 0;
  const chosen = useQuery(rollbackQuery(run.run_id, from)).data?.undone.length;
  return (
    <FormDialog
      title="Roll this run back"
      verb="Roll back"
      danger
      disabled={chosen === 0}
      close={close}
      act={(form) => direct(api.POST('/api/v1/runs/{run}/rollback', { ...of(run), headers: key, body: { reason: text(form, 'reason'), step: from === '' ? null : from } }), 'What the run did is being undone.')}
    >
      <p>
        {over
          ? 'This run stays as it is. A new one undoes what it has done, the newest first. The policy judges each step of that, and may ask people.'
          : 'What the run has done is undone, the newest first, then the run ends.'}
      </p>
      {done.length > 1 && !nothing && (
        <Select label="How far back" value={from} onChange={(event) => setFrom(event.target.value)}>
          <option value="">Everything</option>
          {done.slice(1).map((step) => (
            <option key={step.position} value={step.key}>
              {visible(step.key)} and what came after it
            </option>
          ))}
        </Select>
      )}
      <Undone run={run} from={from} />
      {!nothing && <Reason />}
    </FormDialog>
  );
}

/** What would be undone, from a step on or everything, as the server would do it now. */
function Undone({ run, from }: { run: Run; from: string }) {
  const preview = useQuery(rollbackQuery(run.run_id, from));
  return (
    <Loaded query={preview} rows={2}>
      {({ undone, left, asks }) => (
        <>
          {undone.length === 0 ? (
            <p className="quiet">No step that has run declares how it is undone.</p>
          ) : (
            <ol className="undone">
              {undone.map((step) => (
                <li key={step.position}>
                  <Text of={step.step} /> <span className="quiet">by</span> <code><Text of={step.by} /></code>
                  {step.verified_by != null && <><span className="quiet">, verified by</span> <code><Text of={step.verified_by} /></code></>}
                  {step.state !== 'succeeded' && <span className="quiet">: it may have done nothing, which is found out first</span>}
                  {step.policy != null && step.policy.verdict !== 'allow' && (
                    <p className="note">
                      The policy {step.policy.verdict === 'needs_approval' ? 'asks people first' : 'does not let it happen'}:{' '}
                      <Text of={(step.policy.reasons ?? []).join('; ')} />
                    </p>
                  )}
                </li>
              ))}
            </ol>
          )}
          {left.length > 0 && (
            <p className="note">
              Stays as it is: {left.map((step) => `${visible(step.step)} (${visible(step.why)})`).join(', ')}.
            </p>
          )}
          {undone.length > 0 && <p className="quiet">Asked first: <Prose of={`${asks}.`} /></p>}
        </>
      )}
    </Loaded>
  );
}

function Pause({ run, close }: Props) {
  const direct = useDirective(run);
  return (
    <FormDialog
      title="Pause this run"
      verb="Pause"
      close={close}
      act={(form) => direct(api.POST('/api/v1/runs/{run}/pause', { ...of(run), body: { reason: text(form, 'reason') } }), 'The run is paused.')}
    >
      <p>No further step begins until a person resumes it. A step that is running finishes; votes and signals are kept.</p>
      <Reason />
    </FormDialog>
  );
}

function Resume({ run, close }: Props) {
  const direct = useDirective(run);
  return (
    <FormDialog title="Resume this run" verb="Resume" close={close} act={() => direct(api.POST('/api/v1/runs/{run}/resume', { ...of(run), body: {} }), 'The run goes on.')}>
      <p>The pause ends, and the run goes on where it stood.</p>
    </FormDialog>
  );
}

function Retry({ run, close }: Props) {
  const direct = useDirective(run);
  const [key] = useState(intention);
  const over = isOver(run.state);
  return (
    <FormDialog
      title={over ? 'Retry in a new run' : 'Retry the step'}
      verb="Retry"
      close={close}
      act={async (form) => direct(api.POST('/api/v1/runs/{run}/retry', { ...of(run), headers: key, body: { input: json(form, 'input') as Schema['Json'] } }), 'The step is tried again.', 'People are asked first; then the step is tried again.')}
    >
      <p>
        {over
          ? 'This run stays as it is. A new one takes over what it achieved, and begins with the step that stopped it.'
          : 'The step that stopped the run is tried again, with all its attempts. What is behind a gate asks people again.'}
      </p>
      {!over && (
        <details>
          <summary>With another input</summary>
          <Area name="input" label="Input as JSON" rows={4} code hint="It is checked like the first one, and asks for approval again where that was needed." />
        </details>
      )}
    </FormDialog>
  );
}

function Skip({ run, close }: Props) {
  const direct = useDirective(run);
  return (
    <FormDialog
      title="Skip the step"
      verb="Skip"
      danger
      close={close}
      act={(form) => direct(api.POST('/api/v1/runs/{run}/skip', { ...of(run), body: { reason: text(form, 'reason') } }), 'The run goes on without the step.')}
    >
      <p>The run goes on without the step that stopped it. Past an approval that was not given, this takes as many people as the approval did.</p>
      <Reason />
    </FormDialog>
  );
}

function Reassign({ run, close }: Props) {
  const direct = useDirective(run);
  return (
    <FormDialog
      title="Have another worker take the run"
      verb="Reassign"
      danger
      close={close}
      act={(form) => direct(api.POST('/api/v1/runs/{run}/reassign', { ...of(run), body: { reason: text(form, 'reason') } }), 'Another worker is looked for.', 'People are asked first; then another worker is looked for.')}
    >
      <p>{reassigns(run)}</p>
      <Reason />
    </FormDialog>
  );
}

/** What will happen, by what has become of the run's worker. */
function reassigns({ assignment, state }: Run): string {
  const asks = state === 'paused' ? ' Where an approval guards the step, those people are asked again.' : '';
  if (assignment?.state === 'acked') {
    return `“${visible(assignment.worker ?? '')}” has not begun the step, and gives the run up. The worker that is found begins with an empty directory.${asks}`;
  }
  if (assignment?.lost === true) {
    return `The next worker begins with an empty directory. What the lost one has left there is gone; see what its command did first.${asks}`;
  }
  return `No worker has taken the run. One is looked for anew, with all attempts.${asks}`;
}

export function RestartDialog({ run, from, close }: { run: Run; from?: string; close: () => void }) {
  const direct = useDirective(run);
  const [key] = useState(intention);
  return (
    <FormDialog
      title={from === undefined ? 'Restart from the beginning' : 'Restart from this step'}
      verb="Restart"
      close={close}
      act={() => direct(api.POST('/api/v1/runs/{run}/restart', { ...of(run), headers: key, body: { from: from ?? null } }), 'The run begins again.')}
    >
      <p>
        {isOver(run.state) ? 'This run stays as it is, and a new one is made. ' : ''}
        {from === undefined ? (
          'Every step runs again, with the same inputs.'
        ) : (
          <>
            What came before “<Text of={from} />” is kept; it and all after it run again.
          </>
        )}{' '}
        Gates on the way ask people again.
      </p>
    </FormDialog>
  );
}

function Signal({ run, close }: Props) {
  const queries = useQueryClient();
  const why = useQuery(whyQuery(run.run_id));
  const wanted = why.data?.because.find((cause) => cause.cause === 'signal');
  async function send(form: FormData) {
    const body = { type: text(form, 'type'), payload: (json(form, 'payload') ?? null) as Schema['Json'] };
    await must(api.POST('/api/v1/runs/{run}/signals', { ...of(run), body }));
    void queries.invalidateQueries({ queryKey: ['run', run.run_id] });
    return 'The signal is stored.';
  }
  return (
    <FormDialog title="Send a signal" verb="Send" close={close} act={send}>
      <p>The step that waits for it takes it, and the run goes on.</p>
      <Input name="type" label="Type" defaultValue={wanted?.cause === 'signal' ? wanted.signal : ''} required />
      <Area name="payload" label="Payload as JSON (optional)" rows={3} code />
    </FormDialog>
  );
}

function Resolve({ run, steps, close }: Props) {
  const direct = useDirective(run);
  const why = useQuery(whyQuery(run.run_id));
  // A run that was canceled meanwhile has no step in doubt any more, and the effect that it left is.
  const left = (why.data?.because ?? []).flatMap((cause) => (cause.cause === 'doubt' && cause.step != null ? [cause.step] : []));
  const doubtful = [...new Set([...steps.filter((step) => step.state === 'in_doubt').map((step) => step.key), ...left])];
  // Its directory went with the worker: the run goes on elsewhere only once a person has it reassigned.
  const lost = why.data?.because.some((cause) => cause.cause === 'worker_lost') === true;
  return (
    <FormDialog
      title="Settle the doubt"
      verb="Record it"
      close={close}
      act={async (form) => {
        const outcome = text(form, 'outcome') as Schema['Resolution'];
        const body = { outcome, reason: text(form, 'reason'), output: json(form, 'output') as Schema['Json'] };
        const params = { path: { run: run.run_id, step: text(form, 'step') || (doubtful[0] ?? '') } };
        const goesOn = lost && outcome === 'did_not_happen' ? 'It is recorded. The run can be reassigned now.' : 'It is recorded, and the run goes on.';
        const said = isOver(run.state) ? 'It is recorded. The run can be retried now.' : goesOn;
        return direct(api.POST('/api/v1/runs/{run}/steps/{step}/resolve', { params, body }), said);
      }}
    >
      <p>An effect was sent and its outcome is unknown. Look in the other system first; what you say here is believed.</p>
      {doubtful.length === 1 ? (
        <p>
          Step: <strong><Text of={doubtful[0]!} /></strong>
        </p>
      ) : (
        <Select name="step" label="Step">
          {doubtful.map((key) => (
            <option key={key}>{key}</option>
          ))}
        </Select>
      )}
      <Select
        name="outcome"
        label="What became of it"
        required
        defaultValue=""
        hint="That it did not happen, or failed, is believed only some time after the end of the worker’s lease: a request may still be on its way."
      >
        <option value="" disabled>
          Choose …
        </option>
        <option value="happened">It happened: the step has succeeded</option>
        <option value="did_not_happen">{lost ? 'It did not happen: have the run reassigned next' : 'It did not happen: try it again'}</option>
        <option value="failed">It failed: the step has failed</option>
      </Select>
      <Area name="output" label="Output as JSON, if it happened (optional)" rows={2} code />
      <Reason label="How do you know?" />
    </FormDialog>
  );
}

type Directive = Exclude<Action, 'approve' | 'reject'>;

export const DIALOGS: Record<Directive, ComponentType<Props>> = {
  cancel: Cancel, rollback: Rollback, pause: Pause, resume: Resume, retry: Retry, reassign: Reassign, skip: Skip,
  restart: ({ run, close }) => <RestartDialog run={run} close={close} />, signal: Signal, resolve: Resolve,
};
