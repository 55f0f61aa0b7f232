/** The task workspace: on the left what was asked for, the plan by phase and the decision that is due; on the right what happens. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Refusal, type Approval, type Run, type Step } from '../../api/client';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { JsonView } from '../../parts/json';
import { Loading, ProblemNote } from '../../parts/notes';
import { State } from '../../parts/state';
import { Ago, Countdown, Id, Prose, Text, Took, useNow } from '../../parts/text';
import { at, Link, useParam } from '../../route/router';
import { Terminal } from '../../terminal/terminal';
import { instants, sentence, toldCauses } from '../../text/why';
import { DecideDialog } from '../approvals/decide';
import { canDecide, dueAt, isOverdue, titleOf, useDecider, whyNot } from '../approvals/inbox';
import { ApprovalVotes } from '../approvals/votes';
import { NoSuchRun } from '../run/absent';
import { hasStopped } from '../run/actions';
import { PHASE_WORDS, phaseStarts } from '../run/phases';
import { definitionQuery, runApprovalsQuery, runQuery, stepsQuery, whyQuery, type Definition, type Phase } from '../run/query';

export function WorkspaceRoom({ id }: { id: string }) {
  const run = useQuery(runQuery(id));
  const steps = useQuery(stepsQuery(id));
  const [chosen, choose] = useParam('step');
  const list = steps.data ?? [];
  const selected = list.find((step) => String(step.position) === chosen) ?? followed(list, run.data?.position);
  const move = (by: number) => {
    const next = selected === undefined ? undefined : list[list.indexOf(selected) + by];
    if (next !== undefined) choose(String(next.position));
  };
  useKeys('Workspace', [
    { press: 'j', does: 'Next step', run: () => move(1) },
    { press: 'k', does: 'Previous step', run: () => move(-1) },
  ]);
  // What stands above and within the plan, so that it does not push the plan down when it comes.
  const pinned = useQuery({ ...definitionQuery(run.data?.workflow ?? '', run.data?.workflow_version ?? 0), enabled: run.data !== undefined });
  const waits = [pinned, useQuery(whyQuery(id)), useQuery(runApprovalsQuery(id))].some((query) => query.isPending);
  if (run.data === undefined || steps.data === undefined || waits) {
    const error = run.error ?? steps.error;
    if (error === null) return <Loading rows={14} />;
    return error instanceof Refusal && error.problem.status === 404 ? <NoSuchRun /> : <ProblemNote error={error} />;
  }
  return (
    <div className="room workspace-room">
      <div className="workspace">
        <div className="workspace-left">
          <Ticket run={run.data} />
          <PendingDecision run={run.data} />
          <PlanByPhase run={run.data} steps={list} selected={selected?.position} choose={choose} />
        </div>
        <section className="workspace-right" aria-label="Live output">
          {selected !== undefined && (
            <>
              <header className="pane-head">
                <h2>
                  <Text of={selected.key} />
                </h2>
                <State of={selected.state} />
                {chosen !== '' && (
                  <Button look="quiet" onClick={() => choose('')}>
                    Follow the run
                  </Button>
                )}
              </header>
              <Terminal key={selected.key} run={id} step={selected.key} stopped={hasStopped(selected)} tall />
            </>
          )}
        </section>
      </div>
    </div>
  );
}

/** Kinds of steps that write nothing while they run. */
const SILENT = ['approval', 'wait', 'transform'];

/** The step whose output is shown until the viewer chooses one: the run's current step, or the newest before it that can write. */
function followed(steps: Step[], position: number | undefined): Step | undefined {
  const current = steps.find((step) => step.position === position);
  if (current !== undefined && !SILENT.includes(current.kind)) return current;
  const begun = steps.filter((step) => step.started_at != null && !SILENT.includes(step.kind));
  return begun.toSorted((a, b) => b.started_at! - a.started_at!)[0] ?? current ?? steps[0];
}

function Ticket({ run }: { run: Run }) {
  const why = useQuery(whyQuery(run.run_id));
  const now = useNow();
  return (
    <section className="pane" aria-label="Ticket">
      <p className="crumbs">
        <Link to={at('runs', run.run_id)}>
          Run <Id of={run.run_id} bare />
        </Link>{' '}
        · <Text of={run.workflow} /> v{run.workflow_version}
      </p>
      <div className="run-title">
        <h1>
          <Text of={run.subject ?? run.workflow} />
        </h1>
        <State of={run.state} detail={run.detail ?? run.reason} />
      </div>
      <p className="quiet">
        Started <Ago at={run.created_at} /> by <Text of={run.started_by ?? run.trigger.type} />, {run.finished_at == null ? 'for ' : 'took '}
        <Took from={run.created_at} to={run.finished_at} />
      </p>
      {toldCauses(why.data?.because ?? []).map((cause, index) => (
        <p key={index} title={instants(cause)}>
          <Prose of={sentence(cause, now, run.finished_at != null)} />
        </p>
      ))}
      <details>
        <summary>Inputs</summary>
        <JsonView value={run.inputs} what="the run’s inputs" />
      </details>
    </section>
  );
}

function PendingDecision({ run }: { run: Run }) {
  const me = useDecider();
  const now = useNow();
  const approvals = useQuery(runApprovalsQuery(run.run_id));
  const [deciding, setDeciding] = useState<{ approval: Approval; approve: boolean }>();
  const open = approvals.data?.find((approval) => approval.state === 'requested');
  const decidable = open !== undefined && canDecide(open, me);
  const decide = (approve: boolean) => open !== undefined && setDeciding({ approval: open, approve });
  const keys = [
    { press: 'a', does: 'Approve, after a confirmation', run: () => decide(true) },
    { press: 'r', does: 'Reject, after a confirmation', run: () => decide(false) },
  ];
  useKeys('Decision', decidable ? keys : []);
  if (open === undefined) return null;
  return (
    <section className="pane decision-due" aria-label="Pending decision">
      <header className="pane-head">
        <h2>Decision due</h2>
        {isOverdue(open, now) ? <span className="tag warn">overdue</span> : <Countdown to={dueAt(open)} label="Due in" />}
      </header>
      <p className="question">
        <Text of={titleOf(open)} lines />
      </p>
      <ApprovalVotes approval={{ ...open, message: null }} />
      <p>
        <Link to={at('approvals', open.approval)}>See the whole request</Link>
      </p>
      {decidable ? (
        <div className="decide">
          <Button look="primary" press="a" onClick={() => decide(true)}>
            Approve …
          </Button>
          <Button press="r" onClick={() => decide(false)}>
            Reject …
          </Button>
        </div>
      ) : (
        <p className="quiet">{whyNot(open, me)}</p>
      )}
      {deciding !== undefined && <DecideDialog approvals={[deciding.approval]} approve={deciding.approve} close={() => setDeciding(undefined)} />}
    </section>
  );
}

interface PlanProps {
  run: Run;
  steps: Step[];
  selected: number | undefined;
  choose: (position: string) => void;
}

function PlanByPhase({ run, steps, selected, choose }: PlanProps) {
  const pinned = useQuery(definitionQuery(run.workflow, run.workflow_version));
  const starts = phaseStarts(pinned.data?.definition as Definition | undefined);
  return (
    <section className="pane workspace-plan" aria-label="Plan">
      {steps.map((step) => (
        <PlannedStep key={step.position} step={step} phase={starts.get(step.key)} here={step.position === selected} choose={choose} />
      ))}
    </section>
  );
}

function PlannedStep({ step, phase, here, choose }: { step: Step; phase: Phase | undefined; here: boolean; choose: (position: string) => void }) {
  return (
    <>
      {phase !== undefined && <p className="phase">{PHASE_WORDS[phase]}</p>}
      <button type="button" className="planned-step" aria-pressed={here} onClick={() => choose(String(step.position))}>
        <span className="step-key">
          <Text of={step.key} />
        </span>
        <State of={step.state} />
        <span className="step-took">{step.started_at != null && <Took from={step.started_at} to={step.finished_at} />}</span>
      </button>
    </>
  );
}
