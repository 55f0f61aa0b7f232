/** Below the timeline: what happened in order, what the run was given and gave, and what else is known about it. */

import { useState } from 'react';
import type { Run, Step } from '../../api/client';
import { Facts } from '../../parts/facts';
import { JsonView } from '../../parts/json';
import { Loading } from '../../parts/notes';
import { State } from '../../parts/state';
import { Table } from '../../parts/table';
import { Tabs } from '../../parts/tabs';
import { Id, Instant, Prose, Text } from '../../parts/text';
import { Link, useParam } from '../../route/router';
import { words, type RunEvent } from '../../text/events';
import { local, span, timeOfDay, utc } from '../../text/span';
import { isOver } from './actions';
import { amount } from './cost';
import { EvidenceTab } from './evidence';
import { StepErrorView } from './step';
import { EVENTS_MAX } from './query';

interface Props {
  run: Run;
  steps: Step[];
  events: RunEvent[] | undefined;
}

export function Details({ run, steps, events }: Props) {
  const [tab, setTab] = useParam('tab');
  const tabs = [
    { id: 'events', title: 'Events' },
    { id: 'data', title: 'Inputs and output' },
    { id: 'about', title: 'About' },
    ...(isOver(run.state) ? [{ id: 'evidence', title: 'Evidence' }] : []),
  ];
  const shown = tabs.find((each) => each.id === tab)?.id ?? 'events';
  return (
    <section className="pane details" aria-label="Details of the run">
      <Tabs tabs={tabs} shown={shown} show={setTab} />
      <div role="tabpanel" aria-label={tabs.find((each) => each.id === shown)?.title}>
        {shown === 'events' && (events === undefined ? <Loading rows={6} /> : <Events events={events} steps={steps} />)}
        {shown === 'data' && <Data run={run} />}
        {shown === 'about' && <About run={run} steps={steps} />}
        {shown === 'evidence' && <EvidenceTab run={run} />}
      </div>
    </section>
  );
}

const SHOWN_AT_FIRST = 60;

function Events({ events, steps }: { events: RunEvent[]; steps: Step[] }) {
  const [all, setAll] = useState(false);
  const newestFirst = events.toReversed();
  const shown = all ? newestFirst : newestFirst.slice(0, SHOWN_AT_FIRST);
  return (
    <>
      <Table
        caption="Events, newest first"
        className="events"
        rows={shown}
        keyOf={(event) => event.seq}
        columns={[
          { title: '#', number: true, className: 'quiet', cell: (event) => event.seq },
          { title: 'Time', className: 'mono', cell: (event) => <span title={`${local(event.at)}\n${utc(event.at)}`}>{timeOfDay(event.at)}</span> },
          { title: 'Step', cell: ({ body }) => body.step !== undefined && <Text of={steps[body.step]?.key ?? `step ${body.step + 1}`} /> },
          { title: 'What happened', cell: (event) => <span title={event.body.event}><Prose of={words(event)} /></span> },
          { title: 'By', className: 'quiet', cell: ({ context }) => <By context={context} /> },
        ]}
      />
      {shown.length < events.length && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          Show all {events.length.toLocaleString()} events
        </button>
      )}
      {events.length >= EVENTS_MAX && <p className="quiet">Only the first {EVENTS_MAX.toLocaleString()} events are shown.</p>}
    </>
  );
}

/** Who or what caused an event, and what else was said about it. */
function By({ context: { person, key, initiator, reason, metadata } }: { context: RunEvent['context'] }) {
  const who = key == null ? person : `key ${key}${person == null ? '' : ` of ${person}`}`;
  return (
    <>
      <Text of={who ?? initiator} />
      {who != null && initiator !== 'user' && <> · {initiator}</>}
      {reason != null && <>: <Text of={reason} /></>}
      {metadata != null && (
        <details>
          <summary>Context</summary>
          <JsonView value={metadata} what="the event’s context" />
        </details>
      )}
    </>
  );
}

function Data({ run }: { run: Run }) {
  return (
    <div className="data">
      <div>
        <h3>Inputs</h3>
        <JsonView value={run.inputs} what="the run’s inputs" />
      </div>
      <div>
        <h3>{run.error == null ? 'Output' : 'Error'}</h3>
        {run.error != null ? (
          <StepErrorView error={run.error} />
        ) : run.output === undefined ? (
          <p className="quiet">None yet.</p>
        ) : (
          <JsonView value={run.output} what="the run’s output" />
        )}
      </div>
    </div>
  );
}

function About({ run, steps }: { run: Run; steps: Step[] }) {
  const labels = Object.entries(run.labels ?? {});
  return (
    <Facts
      of={[
        ['Run', <code className="wrap">{run.run_id}</code>],
        ['Created', <Instant at={run.created_at} />],
        ['Finished', run.finished_at == null ? '–' : <Instant at={run.finished_at} />],
        ['Deadline', run.deadline_at == null ? '–' : <Instant at={run.deadline_at} />],
        ['Trigger', <Text of={[run.trigger.type, run.trigger.ref].filter(Boolean).join(' · ')} />],
        ['Workspace', <Text of={run.workspace} />],
        ['Priority', run.priority],
        ...numbers(run),
        ...(run.undone == null || run.undone.length === 0 ? [] : [['Undone', <Undone run={run} steps={steps} />] as [string, React.ReactNode]]),
        ...(run.spent_micros == null ? [] : [['Spent', amount(run.spent_micros, run.spent_unit)] as [string, string]]),
        [
          'Labels',
          labels.length === 0
            ? '–'
            : labels.map(([name, value]) => (
                <Link key={name} className="chip" to={`/runs?label=${encodeURIComponent(`${name}:${value}`)}`}>
                  <Text of={`${name}:${value}`} />
                </Link>
              )),
        ],
        ['Chain', run.resume_count === 0 ? 'not resumed' : `number ${run.resume_count + 1} of its chain`],
        ['Root', run.root_run_id == null ? '–' : <Id of={run.root_run_id} />],
        ['Trace', run.traceparent == null ? '–' : <code className="wrap"><Text of={run.traceparent} /></code>],
      ]}
    />
  );
}

/** The run in numbers, once it has ended. */
function numbers({ metrics }: Run): [string, string][] {
  if (metrics == null) return [];
  const { steps, succeeded, failed, skipped, attempts, retries, approvals, approval_wait_ms, output_bytes, printed_bytes = 0 } = metrics;
  const ended = [`${succeeded} of ${steps} succeeded`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`];
  const asked = approvals === 0 ? 'none' : `${approvals === 1 ? 'once' : `${approvals} times`}, ${span(approval_wait_ms)} of waiting`;
  return [
    ['Steps', ended.filter(Boolean).join(', ')],
    ['Attempts', retries === 0 ? `${attempts}` : `${attempts}, of which ${retries === 1 ? 'one retry' : `${retries} retries`}`],
    ['People asked', asked],
    ['Output', `${output_bytes.toLocaleString()} bytes${printed_bytes === 0 ? '' : `, and ${printed_bytes.toLocaleString()} bytes printed`}`],
  ];
}

/** What was undone, in that order. */
function Undone({ run, steps }: { run: Run; steps: Step[] }) {
  return (
    <ol className="undone">
      {(run.undone ?? []).map((entry) => (
        <li key={entry.by_position}>
          <Text of={steps[entry.position]?.key ?? `step ${entry.position + 1}`} />{' '}
          <State of={entry.outcome} /> {entry.verified != null && (
            <span className={entry.verified ? 'tag' : 'tag warn'}>{entry.verified ? 'verified' : 'unverified'}</span>
          )}{' '}
          <Instant at={entry.at} />
        </li>
      ))}
    </ol>
  );
}
