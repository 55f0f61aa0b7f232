/** One run: why it stands where it stands, what it did and when, and what can be done about it. */

import { useQueries, useQuery } from '@tanstack/react-query';
import { Loading, ProblemNote } from '../../parts/notes';
import { Refusal } from '../../api/client';
import { useParam } from '../../route/router';
import { useKeys } from '../../keyboard/keys';
import { NoSuchRun } from './absent';
import { RunHead } from './head';
import { phaseStarts } from './phases';
import {
  attemptsQuery, decisionsQuery, definitionQuery, receiptsQuery, runApprovalsQuery, runQuery, stepsQuery, useEventsQuery, whyQuery, type Definition,
} from './query';
import { Details } from './details';
import { StepPane } from './step';
import { Timeline } from './timeline';

export function RunRoom({ id }: { id: string }) {
  const run = useQuery(runQuery(id));
  const steps = useQuery(stepsQuery(id));
  const events = useQuery(useEventsQuery(id));
  const [chosen, choose] = useParam('step');
  const pinned = useQuery({ ...definitionQuery(run.data?.workflow ?? '', run.data?.workflow_version ?? 0), enabled: run.data !== undefined });
  const phases = phaseStarts(pinned.data?.definition as Definition | undefined);
  const list = steps.data ?? [];
  const position = list.findIndex((step) => String(step.position) === chosen);
  const selected = list[position] ?? list.find((step) => step.position === run.data?.position) ?? list[0];
  const move = (by: number) => {
    const from = selected === undefined ? -1 : list.indexOf(selected);
    const next = list[Math.max(0, Math.min(list.length - 1, from + by))];
    if (next !== undefined) choose(String(next.position));
  };
  useKeys('Run', [
    { press: 'j', does: 'Next step', run: () => move(1) },
    { press: 'k', does: 'Previous step', run: () => move(-1) },
  ]);
  // The room is drawn once all that its height depends on has come: what came one by one would make it jump.
  const others = useQueries({ queries: [attemptsQuery(id), decisionsQuery(id), receiptsQuery(id), runApprovalsQuery(id), whyQuery(id)] });
  const waits = [steps, events, pinned, ...others].some((query) => query.isPending);
  if (run.data === undefined || waits) {
    if (run.error === null) return <Loading rows={14} />;
    const absent = run.error instanceof Refusal && run.error.problem.status === 404;
    return absent ? <NoSuchRun /> : <ProblemNote error={run.error} />;
  }
  return (
    <div className="room run-room">
      <RunHead run={run.data} steps={list} />
      {steps.error !== null && <ProblemNote error={steps.error} />}
      <div className="run-panes">
        <div className="run-left">
          <section className="pane" aria-label="Steps">
            {steps.data === undefined ? (
              <Loading rows={6} />
            ) : (
              <Timeline run={run.data} steps={list} events={events.data ?? []} selected={selected?.position} choose={choose} phases={phases} />
            )}
          </section>
          <Details run={run.data} steps={list} events={events.data} />
        </div>
        <section className="pane step-pane" aria-label="The selected step">
          {selected === undefined ? <Loading rows={6} /> : <StepPane run={run.data} steps={list} step={selected} events={events.data ?? []} />}
        </section>
      </div>
    </div>
  );
}
