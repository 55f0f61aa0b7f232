/** Runs: what there is, live, by what it has in common. */

import { useEffect, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useMay } from '../../api/session';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { useNow } from '../../parts/text';
import { at, go, useAddress, useParam, withQuery } from '../../route/router';
import { BulkDialog } from './bulk';
import { Charts, ChartsButton, useChartsShown } from './charts';
import { FilterBar } from './filter-bar';
import { filterOf, isEmpty, notForBulk } from './filter';
import { heldBack, useHeldRows } from './held';
import { JobDialog, JobsDialog } from './jobs';
import { runsQuery } from './query';
import { StatusStrip } from './strip';
import { RunTable } from './table';
import { SavedViews } from './views';

export function RunsRoom() {
  const { query, path } = useAddress();
  const minute = Math.floor(useNow() / 60_000) * 60_000;
  const filter = filterOf(query, minute);
  const unfit = notForBulk(filter);
  const after = query.get('after') ?? undefined;
  const runs = useQuery(runsQuery(filter, after));
  const [pointed, setPointed] = useState(false);
  const [cursor, setCursor] = useState(-1);
  const [bulk, setBulk] = useState(false);
  const [jobs, setJobs] = useState(false);
  const [job, setJob] = useParam('job');
  const operates = useMay('operate');
  const [charts, turnCharts] = useChartsShown();
  const table = useRef<HTMLTableSectionElement>(null);
  const question = query.toString();
  useEffect(() => setCursor(-1), [question]);
  const held = useHeldRows({ fresh: runs.data?.runs, stale: runs.isPlaceholderData }, pointed || cursor >= 0, question);
  const { rows } = held;
  const notShown = heldBack(held);

  function move(by: number) {
    const next = Math.max(0, Math.min(rows.length - 1, cursor + by));
    setCursor(next);
    table.current?.querySelectorAll<HTMLElement>('tr a.row-link')[next]?.focus();
  }
  function older() {
    const next = runs.data?.next_after;
    if (next != null) go(withQuery(path, changed(query, 'after', next)));
  }
  useKeys('Runs', [
    { press: 'j', does: 'Next run', run: () => move(1) },
    { press: 'k', does: 'Previous run', run: () => move(-1) },
    { press: 'Enter', does: 'Open the run', run: () => rows[cursor] && go(at('runs', rows[cursor].run_id)) },
    { press: '/', does: 'Search', run: () => document.getElementById('search')?.focus() },
    { press: ']', does: 'Older runs', run: older },
    { press: '[', does: 'Newest runs', run: () => go(withQuery(path, changed(query, 'after', ''))) },
    { press: 'h', does: charts ? 'Hide the charts' : 'Show the charts', run: turnCharts },
    { press: 'Escape', does: 'Let the list move again', run: () => setCursor(-1) },
  ]);

  return (
    <div className="room">
      <header className="room-head">
        <h1>Runs</h1>
        <SavedViews />
        <div className="room-actions">
          <span className="arrived" aria-live="polite">
            {notShown !== undefined && (
              <button type="button" onClick={() => (setCursor(-1), setPointed(false))}>
                {notShown}
              </button>
            )}
          </span>
          <ChartsButton shown={charts} turn={turnCharts} />
          {operates && (
            <Button look="quiet" onClick={() => setJobs(true)}>
              Jobs
            </Button>
          )}
          {operates && (
            <Button onClick={() => setBulk(true)} disabled={unfit !== undefined} title={unfit}>
              Act on all matching …
            </Button>
          )}
        </div>
      </header>
      <StatusStrip />
      {charts && <Charts filter={filter} />}
      <FilterBar />
      {runs.error !== null && <ProblemNote error={runs.error} />}
      {runs.data === undefined ? (
        runs.error === null && <Loading rows={12} />
      ) : rows.length === 0 ? (
        <NoRuns filtered={!isEmpty(filter)} />
      ) : (
        <div onPointerEnter={() => setPointed(true)} onPointerLeave={() => setPointed(false)}>
          <RunTable rows={rows} cursor={cursor} body={table} />
        </div>
      )}
      <nav className="pager" aria-label="Pages of runs">
        {after !== undefined && <Button onClick={() => go(withQuery(path, changed(query, 'after', '')))}>Newest</Button>}
        {runs.data?.next_after != null && <Button onClick={older}>Older</Button>}
      </nav>
      {bulk && <BulkDialog filter={filter} started={setJob} close={() => setBulk(false)} />}
      {jobs && <JobsDialog open={(id) => (setJobs(false), setJob(id))} close={() => setJobs(false)} />}
      {job !== '' && <JobDialog job={job} close={() => setJob('')} />}
    </div>
  );
}

function changed(query: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(query);
  if (value === '') next.delete(name);
  else next.set(name, value);
  return next;
}

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No run matches">
        <p>Labels and inputs that are named match as a whole. Take a filter away, or look at a longer time.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet" command="interlock run start WORKFLOW --input name=value">
      <p>A run is one execution of a workflow. Start one from a workflow’s page, or at the command line:</p>
    </Empty>
  );
}
