/** The complete card: what is asked, by which run, what follows, and who has said what. */

import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, must, type Approval, type Run, type Schema } from '../../api/client';
import { written } from '../../text/exact';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { JsonView } from '../../parts/json';
import { Loading, ProblemNote } from '../../parts/notes';
import { State } from '../../parts/state';
import { Table } from '../../parts/table';
import { Ago, Countdown, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { runQuery } from '../run/query';
import { Compared, comparisonQuery } from './compared';
import { canDecide, isOverdue, reasonOf, titleOf, useDecider, whyNot } from './inbox';
import { ApprovalVotes, Progress } from './votes';

interface Props {
  approval: Approval;
  decide: (approve: boolean) => void;
}

export function ApprovalCard({ approval, decide }: Props) {
  const me = useDecider();
  const run = useQuery(runQuery(approval.run_id));
  const mine = canDecide(approval, me);
  const reason = reasonOf(approval);
  return (
    <article className="card">
      <header>
        <p className="crumbs">
          <Link to={at('runs', approval.run_id)}>
            <Text of={[approval.workflow, approval.subject].filter(Boolean).join(' · ')} />
          </Link>
        </p>
        <h2 className="question">
          <Text of={titleOf(approval, approval.subject)} lines />
        </h2>
        {reason !== undefined && (
          <p className="asked-why">
            <span className="quiet">Asked because</span> <Text of={reason} lines />
          </p>
        )}
        <p className="card-line">
          <State of={approval.state} detail={approval.purpose === 'gate' ? null : `to ${approval.purpose}`} />
          <Progress approval={approval} />
          <span className="quiet">
            asked <Ago at={approval.requested_at} />
          </span>
        </p>
      </header>
      {mine ? (
        <div className="decide">
          <Button look="primary" press="a" onClick={() => decide(true)}>
            Approve …
          </Button>
          <Button press="r" onClick={() => decide(false)}>
            Reject …
          </Button>
        </div>
      ) : (
        approval.state === 'requested' && <p className="quiet">{whyNot(approval, me)}</p>
      )}
      {approval.action != null && <WhatIsDone action={approval.action} states={approval.present_state ?? []} />}
      <Facts of={factsOf(approval)} />
      {run.error !== null && <ProblemNote error={run.error} />}
      {run.data === undefined ? run.error === null && <Loading rows={4} /> : <Background approval={approval} run={run.data} />}
      {approval.votes.length > 0 && (
        <section>
          <h3>Votes</h3>
          <ApprovalVotes approval={{ ...approval, message: null }} />
        </section>
      )}
    </article>
  );
}

/** The action, whole: it is what the digest is over. */
export function WhatIsDone({ action, states }: { action: Schema['ActionCard']; states: readonly Schema['PresentState'][] }) {
  if (action.kind === 'approval') return <Guarded gate={action} states={states} />;
  const state = states.find((each) => each.step === action.step);
  const facts: [string, React.ReactNode][] = [
    ['What is done', <><Text of={action.operation} /> <span className="quiet">({action.kind}, step <Text of={action.step} />)</span></>],
    ['Effect', `${action.effect}, blast radius ${action.blast_radius}${action.destructive ? ', destructive' : ''}`],
    ...(action.only_if == null ? [] : [['Only if', <code key="if"><Text of={action.only_if} /></code>] as [string, React.ReactNode]]),
    ['Undone by', action.undone_by == null ? 'nothing: it cannot be rolled back' : <Text of={action.undone_by} />],
  ];
  return (
    <section>
      <h3>The action</h3>
      <Facts of={facts} />
      {action.unknown == null ? (
        <JsonView value={action.input} what="what it is done with" />
      ) : (
        <p className="quiet">
          What it is done with is not known yet: <Text of={action.unknown} />. Your vote does not depend on it.
        </p>
      )}
      {state !== undefined && <Present state={state} />}
      {(action.then ?? []).map((later) => (
        <WhatIsDone key={later.step} action={later} states={states} />
      ))}
    </section>
  );
}

/** What a gate of the workflow lets happen. If one of them is about to be something else by then, people are asked anew. */
function Guarded({ gate, states }: { gate: Schema['ActionCard']; states: readonly Schema['PresentState'][] }) {
  return (
    <section>
      <h3>What this gate guards</h3>
      {gate.unknown != null && (
        <p className="quiet">
          <Text of={gate.unknown} />
        </p>
      )}
      {(gate.then ?? []).map((action) => (
        <WhatIsDone key={action.step} action={action} states={states} />
      ))}
    </section>
  );
}

/** What would change, beside what was there when people were asked. It is shown, and is no part of the digest. */
function Present({ state }: { state: Schema['PresentState'] }) {
  if (state.failed != null) {
    return (
      <p className="quiet">
        The present state could not be read: <Text of={state.failed} />
      </p>
    );
  }
  return (
    <>
      <Table
        caption="What would change"
        className="changes"
        rows={state.changes ?? []}
        keyOf={(change) => change.field}
        columns={[
          { title: 'Field', className: 'c-field', cell: (change) => <Text of={change.field} /> },
          { title: 'Now', className: 'gone', cell: (change) => <code><Text of={written(change.before)} /></code> },
          { title: 'Then', className: 'new', cell: (change) => <code><Text of={written(change.after)} /></code> },
        ]}
      />
      <p className="quiet">
        Read <Ago at={state.read_at} />; it may have changed since.
      </p>
    </>
  );
}

/** What becomes of the run where the approval is not given. */
const BECOMES = {
  fail: 'the run fails',
  pause: 'the run pauses, and an operator says how it goes on',
} as const;

function factsOf(approval: Approval): [string, React.ReactNode][] {
  const facts: [string, React.ReactNode][] = [];
  if (approval.started_by != null) facts.push(['Started by', <Text of={approval.started_by} />]);
  facts.push([
    'Who may decide', 
    approval.approvers.length === 0 ? 'every person with the role approver' : <Text of={approval.approvers.join(', ')} />,
  ]);
  if (approval.tier != null) facts.push(['Tier', approval.tier]);
  if (approval.excluded.length > 0) {
    const who = <><Text of={approval.excluded.join(', ')} />, who started or directed it</>;
    facts.push(
      approval.self_approval === true
        ? ['Who may, too', <>{who}: the tenant lets people approve their own runs</>]
        : ['Who may not', <>{who}, or wrote its workflow</>],
    );
  }
  if (approval.state === 'requested') {
    if (isOverdue(approval, Date.now())) facts.push(['Answer', <span className="tag warn">overdue</span>]);
    else if (approval.escalate_at != null) facts.push(['Answer due in', <Countdown to={approval.escalate_at} label="Due in" />]);
    facts.push(['Expires in', <Countdown to={approval.expires_at} label="Expires in" />]);
    if (approval.on_reject != null) facts.push(['If rejected', BECOMES[approval.on_reject]]);
    if (approval.on_expiry != null) facts.push(['If nobody decides', BECOMES[approval.on_expiry]]);
  }
  facts.push(['Digest', <code className="wrap" title="What exactly is approved, as one hash">{approval.digest}</code>]);
  return facts;
}

/** The steps behind the gate, up to the next one, with what they would be given: walked on paper by the server. */
const walkQuery = (run: Run) =>
  queryOptions({
    queryKey: ['walk', run.workflow, run.workflow_version, run.inputs],
    queryFn: () => must(api.POST('/api/v1/workflows/plan', { body: { workflow: run.workflow, version: run.workflow_version, inputs: run.inputs } })),
    staleTime: Infinity,
    retry: false,
  });

/** What differs, what follows, and what the run was given: at once, so that nothing moves under a finger. */
function Background({ approval, run }: { approval: Approval; run: Run }) {
  const walk = useQuery(walkQuery(run));
  const comparison = useQuery(comparisonQuery(approval, run));
  if (walk.isPending || comparison.isPending) return <Loading rows={8} />;
  return (
    <>
      <Compared approval={approval} run={run} to={comparison.data} />
      {walk.data !== undefined && approval.action?.kind !== 'approval' && (
        <section>
          <h3>{approval.purpose === 'gate' ? 'What happens once it is approved' : 'The steps from here'}</h3>
          <ol className="walk">
            {behindGate(walk.data.steps, approval.position).map((step) => (
              <WalkedStep key={step.step} step={step} />
            ))}
          </ol>
        </section>
      )}
      <section>
        <h3>Inputs</h3>
        <JsonView value={run.inputs} what="the run’s inputs" />
      </section>
    </>
  );
}

export function behindGate(steps: Schema['WalkedStep'][], position: number): Schema['WalkedStep'][] {
  const from = steps[position]?.kind === 'approval' ? position + 1 : position;
  const next = steps.findIndex((step, index) => index >= from && step.kind === 'approval');
  return steps.slice(from, next === -1 ? undefined : next);
}

export function WalkedStep({ step }: { step: Schema['WalkedStep'] }) {
  return (
    <li>
      <p>
        <strong>
          <Text of={step.step} />
        </strong>{' '}
        <span className="quiet">
          <Text of={step.does} />
        </span>
      </p>
      <p className="tags">
        {step.would !== 'run' && <span className="tag">would {step.would.replaceAll('_', ' ')}</span>}
        {step.effect != null && <span className={`tag effect-${step.effect}`}>{step.effect}</span>}
        {step.blast_radius != null && <span className={`tag radius-${step.blast_radius}`}>blast radius {step.blast_radius}</span>}
        {step.effect != null && step.effect !== 'read' && (
          <span className={step.undone_by == null ? 'tag warn' : 'tag'}>
            {step.undone_by == null ? 'cannot be undone' : <>undone by <Text of={step.undone_by} /></>}
          </span>
        )}
      </p>
      {(step.notes ?? []).map((note) => (
        <p key={note} className="quiet">
          <Text of={note} />
        </p>
      ))}
    </li>
  );
}
