/** The top of a run: what it is, why it stands where it stands, and what can be done. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Run, Schema, Step } from '../../api/client';
import { useFlag, useMay } from '../../api/session';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { Copy } from '../../parts/copy';
import { Command } from '../../parts/notes';
import { State } from '../../parts/state';
import { Ago, Id, Prose, Text, Took, useNow } from '../../parts/text';
import { at, Link } from '../../route/router';
import { instants, sentence, toldCauses } from '../../text/why';
import { DecideDialog } from '../approvals/decide';
import { canDecide, titleOf, reasonOf, useDecider, whyNot } from '../approvals/inbox';
import { commandFor } from '../workers/fleet';
import { actionsFor, isOver, type Action } from './actions';
import { DIALOGS, VERBS } from './dialogs';
import { definitionQuery, runApprovalsQuery, whyQuery } from './query';

const KEYS: Partial<Record<Action, string>> = { approve: 'a', reject: 'r', retry: 't', resume: 'e', cancel: 'c', pause: 'p' };

/** What brings a run on, where it is the first thing that helps. */
const LEADS: Action[] = ['approve', 'resolve', 'reassign', 'resume', 'retry', 'signal'];

export function RunHead({ run, steps }: { run: Run; steps: Step[] }) {
  const why = useQuery(whyQuery(run.run_id));
  const now = useNow();
  const me = useDecider();
  const rights = { operate: useMay('operate'), vote: useMay('vote') };
  const approvals = useQuery(runApprovalsQuery(run.run_id));
  const open = approvals.data?.find((approval) => approval.state === 'requested');
  const [doing, setDoing] = useState<Action>();
  // A run that brought its own plan has no workflow to start.
  const defined = useQuery(definitionQuery(run.workflow, run.workflow_version)).data != null;
  const startable = rights.operate && defined;
  const workspace = useFlag('ui.task_workspace.enabled');
  const causes = why.data?.because ?? [];
  const decidable = open !== undefined && canDecide(open, me);
  const actions = actionsFor(run, why.data?.next ?? [], rights, { steps, because: causes, now }).filter(
    (action) => decidable || (action !== 'approve' && action !== 'reject'),
  );
  const keyed = actions.filter((action) => KEYS[action] !== undefined);
  useKeys('This run', keyed.map((action) => ({ press: KEYS[action]!, does: VERBS[action], run: () => setDoing(action) })));
  const needsWorker = why.data?.next.includes('start_worker') === true;
  const close = () => setDoing(undefined);
  const Dialog = doing === undefined || doing === 'approve' || doing === 'reject' ? undefined : DIALOGS[doing];
  return (
    <header className="run-head">
      <p className="crumbs">
        <Link to="/runs">Runs</Link> <span aria-hidden="true">/</span>{' '}
        <Link to={`/runs?workflow=${encodeURIComponent(run.workflow)}`}>
          <Text of={run.workflow} />
        </Link>
      </p>
      <div className="run-title">
        <h1>
          <Text of={run.subject ?? run.workflow} />
        </h1>
        <State of={run.state} detail={run.detail ?? run.reason} />
      </div>
      <p className="run-line quiet">
        <Id of={run.run_id} />
        <Copy text={run.run_id} what="the run’s id" /> ·{' '}
        <Link to={`${at('workflows', run.workflow)}?version=${run.workflow_version}`}>
          <Text of={run.workflow} /> v{run.workflow_version}
        </Link>{' '}
        · started <Ago at={run.created_at} /> by <Text of={run.started_by ?? run.trigger.type} /> ·{' '}
        {isOver(run.state) ? 'took ' : 'for '}
        <Took from={run.created_at} to={run.finished_at} />
        {run.assignment?.state === 'acked' && run.assignment.worker != null && (
          <>
            {' '}
            · assigned to <Link to={at('workers', run.assignment.session ?? '')}><Text of={run.assignment.worker} /></Link>
          </>
        )}
      </p>
      <div className={`why ${isOver(run.state) ? 'over' : ''}`}>
        <div className="why-words">
          {toldCauses(causes).map((cause, index) => (
            <p key={index} title={instants(cause)}>
              <Prose of={sentence(cause, now, isOver(run.state))} />
              {(cause.cause === 'unclaimed' || cause.cause === 'assigning' || cause.cause === 'unknown_task') && (
                <>
                  {' '}
                  <Link to="/workers">See the workers and queues</Link>
                </>
              )}
              {cause.cause === 'queued' && cause.held_by != null && (
                <>
                  {' '}
                  <Link to={at('runs', cause.held_by)}>See that run</Link>
                </>
              )}
            </p>
          ))}
          {causes.length === 0 && <p>&nbsp;</p>}
          {open !== undefined && (
            <blockquote>
              <Text of={titleOf(open)} lines />
              {reasonOf(open) !== undefined && <span className="quiet"> <Text of={reasonOf(open)!} lines /></span>}
            </blockquote>
          )}
          {open !== undefined && rights.vote && !decidable && (
            <p className="quiet">{whyNot(open, me)}</p>
          )}
        </div>
        {(actions.length > 0 || startable || workspace) && (
          <div className="why-actions">
            {actions.map((action, index) => (
              <Button
                key={action}
                look={index === 0 && LEADS.includes(action) ? 'primary' : 'plain'}
                onClick={() => setDoing(action)}
                press={KEYS[action]}
              >
                {VERBS[action]}
              </Button>
            ))}
            {workspace && (
              <Link className="button plain" to={at('workspace', run.run_id)}>
                Open the workspace
              </Link>
            )}
            {startable && (
              <Link className="button plain" to={`${at('workflows', run.workflow)}?like=${run.run_id}`}>
                Start another like it …
              </Link>
            )}
          </div>
        )}
      </div>
      {needsWorker && <Command text={commandFor(causes.map(queueOf).find((queue) => queue !== undefined), causes)} />}
      <Chain run={run} />
      {open !== undefined && (doing === 'approve' || doing === 'reject') && (
        <DecideDialog approvals={[open]} approve={doing === 'approve'} close={close} />
      )}
      {Dialog !== undefined && <Dialog run={run} steps={steps} close={close} />}
    </header>
  );
}

/** The queue in which the step waits for a worker. */
function queueOf(cause: Schema['Cause']): string | undefined {
  return 'queue' in cause ? (cause.queue ?? undefined) : undefined;
}

/** Runs that were made from one another. */
function Chain({ run }: { run: Run }) {
  if (run.resumed_from == null && run.continued_by == null) return null;
  return (
    <p className="chain">
      {run.resumed_from != null && (
        <>
          It {run.trigger.type === 'rollback' ? 'undoes' : 'goes on from'} <Link to={at('runs', run.resumed_from)}>an earlier run</Link>.{' '}
        </>
      )}
      {run.continued_by != null && (
        <>
          <Link to={at('runs', run.continued_by)}>A later run</Link> has taken over from it.
        </>
      )}
    </p>
  );
}
