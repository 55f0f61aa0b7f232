/** The selected step: what it is, what it gave, how often it was tried, and what it did to other systems. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Run, Schema, Step } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { JsonView } from '../../parts/json';
import { State } from '../../parts/state';
import { Ago, Id, Prose, Text, Took } from '../../parts/text';
import type { RunEvent } from '../../text/events';
import { ApprovalVotes } from '../approvals/votes';
import { Attempts, WorkerLink } from './attempts';
import { CostAndCredentials } from './cost';
import { Decisions } from './decisions';
import { canRestartFrom } from './actions';
import { RestartDialog } from './dialogs';
import { StepOutput } from './output';
import { PHASE_WORDS } from './phases';
import { attemptsQuery, definitionQuery, receiptsQuery, runApprovalsQuery, waitOf, type Definition, type DefinedStep } from './query';

interface Props {
  run: Run;
  steps: Step[];
  step: Step;
  events: RunEvent[];
}

export function StepPane({ run, steps, step, events }: Props) {
  const version = useQuery(definitionQuery(run.workflow, run.workflow_version));
  const definition = version.data?.definition as Definition | undefined;
  const defined = definition?.steps?.find((each) => each.id === step.key);
  const approvals = useQuery(runApprovalsQuery(run.run_id));
  const mine = (approvals.data ?? []).filter((approval) => approval.position === step.position);
  const receipts = useQuery(receiptsQuery(run.run_id));
  const effects = (receipts.data ?? []).filter((receipt) => receipt.position === step.position);
  const attempts = useQuery(attemptsQuery(run.run_id));
  const tried = (attempts.data ?? []).filter((attempt) => attempt.position === step.position);
  const [restart, setRestart] = useState(false);
  const operates = useMay('operate');
  const asks = (approvals.data ?? []).some((approval) => approval.state === 'requested' && approval.purpose !== 'skip');
  const restartable = operates && canRestartFrom(step, run, steps, asks);
  return (
    <>
      <header className="pane-head">
        <h2>
          <Text of={step.key} />
        </h2>
        <State of={step.state} />
        {restartable && (
          <Button look="quiet" onClick={() => setRestart(true)}>
            Restart from here …
          </Button>
        )}
      </header>
      {defined?.description !== undefined && (
        <p>
          <Text of={defined.description} />
        </p>
      )}
      <Facts of={[...factsOf(step, defined, tried.length > 1), ...workerFact(tried.at(-1))]} />
      {step.error != null && (
        <section>
          <h3>Error</h3>
          <StepErrorView error={step.error} />
          {step.no_retry != null && (
            <p className="quiet">
              Not tried again: <Prose of={step.no_retry} />.
            </p>
          )}
        </section>
      )}
      <StepOutput key={step.key} run={run.run_id} step={step} />
      {step.output !== undefined && (
        <section>
          <h3>Output</h3>
          <JsonView value={step.output} what="the step’s output" />
        </section>
      )}
      {step.input != null && (
        <section>
          <h3>Input</h3>
          <JsonView value={step.input} what="the step’s input" />
        </section>
      )}
      <Attempts step={step} events={events} tried={tried} />
      <CostAndCredentials tried={tried} />
      {effects.length > 0 && (
        <section>
          <h3>Effects on other systems</h3>
          {effects.map((receipt) => (
            <details key={receipt.id} className="effect">
              <summary>
                <State of={receipt.state} detail={receipt.late === true ? 'late' : undefined} />
                <code>
                  <Text of={receipt.key.split('#')[0] ?? receipt.key} />
                </code>
                <Ago at={receipt.intent_at} />
              </summary>
              <Facts of={[['Receipt', <Id of={receipt.id} />], ['Class', receipt.effect], ['Attempt', receipt.attempt], ['Key', <code className="wrap"><Text of={receipt.key} /></code>], ...(receipt.bundle == null ? [] : [['Policy', <code className="wrap">{receipt.bundle}</code>] as [string, React.ReactNode]])]} />
              <h4>Sent</h4>
              <JsonView value={receipt.request} what="what was sent" />
              {receipt.response != null && (
                <>
                  <h4>Answered</h4>
                  <JsonView value={receipt.response} what="the answer" />
                </>
              )}
            </details>
          ))}
        </section>
      )}
      {mine.map((approval) => (
        <section key={approval.approval}>
          <h3>Approval</h3>
          <ApprovalVotes approval={approval} />
        </section>
      ))}
      <Decisions run={run.run_id} position={step.position} approvals={mine} />
      {restart && <RestartDialog run={run} from={step.key} close={() => setRestart(false)} />}
    </>
  );
}

function factsOf(step: Step, defined: DefinedStep | undefined, retried: boolean): [string, React.ReactNode][] {
  const facts: [string, React.ReactNode][] = [['Kind', step.kind]];
  if (defined?.task !== undefined) facts.push(['Task', <code><Text of={defined.task} /></code>]);
  if (defined?.uses !== undefined) facts.push(['Calls', <code><Text of={defined.uses} /></code>]);
  if (defined?.wait !== undefined) facts.push(['Waits for', <code><Text of={waitOf(defined)} /></code>]);
  if (step.phase != null) facts.push(['Phase', PHASE_WORDS[step.phase]]);
  if (defined?.if !== undefined) facts.push(['Only if', <code><Text of={defined.if} /></code>]);
  if (defined?.effect !== undefined) facts.push(['Effect', defined.effect]);
  if (defined?.blast_radius !== undefined) facts.push(['Blast radius', defined.blast_radius]);
  const undo = defined?.rollback?.task ?? defined?.rollback?.uses;
  if (undo !== undefined) facts.push(['Undone by', <code><Text of={undo} /></code>]);
  const read = step.kind === 'rollback' ? readBack(step.output) : undefined;
  if (read !== undefined) facts.push(['Read back', read]);
  if (step.started_at != null) facts.push(['Started', <Ago at={step.started_at} />]);
  if (step.finished_at != null && step.started_at != null) facts.push([retried ? 'Last attempt' : 'Took', <Took from={step.started_at} to={step.finished_at} />]);
  return facts;
}

/** What the target showed after a rollback. */
function readBack(output: unknown): React.ReactNode {
  const { verified, why } = (output ?? {}) as { verified?: boolean | null; why?: string };
  if (verified === true) return 'the target shows that it is undone';
  if (verified === false) return <>the target does not show whether it is undone{why !== undefined && <>: <Text of={why} /></>}</>;
  return undefined;
}

/** The worker that has the step, or had it last. */
function workerFact(last: Schema['AttemptView'] | undefined): [string, React.ReactNode][] {
  return last === undefined ? [] : [['Worker', <WorkerLink of={last} />]];
}

export function StepErrorView({ error }: { error: unknown }) {
  const known = error as { code?: string; class?: string; message?: string } | null;
  if (typeof known?.message !== 'string') return <JsonView value={error} what="the error" />;
  return (
    <div className="step-error">
      <p>
        <Prose of={known.message} lines />
      </p>
      <code className="quiet">
        <Text of={[known.code, known.class].filter(Boolean).join(' · ')} />
      </code>
    </div>
  );
}
