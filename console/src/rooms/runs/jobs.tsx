/** Bulk jobs: those that were started, and how far one is. */

import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Loaded } from '../../parts/loaded';
import { Loading, ProblemNote } from '../../parts/notes';
import { Ago, Id, Text } from '../../parts/text';
import { at, Link } from '../../route/router';

const VERBS: Record<Schema['BulkAction'], string> = { cancel: 'Canceled', retry: 'Retried', resume: 'Resumed' };
const JOBS_SHOWN = 20;

export function JobsDialog({ open, close }: { open: (job: string) => void; close: () => void }) {
  const list = useQuery({
    queryKey: ['bulk', 'list'],
    queryFn: () => must(api.GET('/api/v1/bulk', { params: { query: { limit: JOBS_SHOWN } } })),
  });
  return (
    <Dialog title="Actions on many runs" close={close}>
      <Loaded query={list} rows={4}>
        {({ jobs }) =>
          jobs.length === 0 ? (
            <p className="quiet">None yet. Filter the runs, then “Act on all matching” cancels, retries or resumes them together.</p>
          ) : (
            <ul className="jobs">
              {jobs.map((job) => (
                <li key={job.job_id}>
                  <button type="button" className="more" onClick={() => open(job.job_id)}>
                    {VERBS[job.action]} {job.total.toLocaleString()} run{job.total === 1 ? '' : 's'}
                  </button>
                  <span className="quiet">
                    <Ago at={job.created_at} />
                    {!job.finished && `, ${job.done.toLocaleString()} so far`}
                    {job.failed > 0 && `, ${job.failed.toLocaleString()} left as they were`}
                  </span>
                  <p className="quiet">
                    {job.person != null && <><Text of={job.person} />: </>}
                    <Text of={job.reason} />
                  </p>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Dialog>
  );
}

/** How far a job is, with what it left as it was. It has an address, so it can be looked at again. */
export function JobDialog({ job, close }: { job: string; close: () => void }) {
  const state = useQuery({
    queryKey: ['bulk', job],
    queryFn: () => must(api.GET('/api/v1/bulk/{job}', { params: { path: { job } } })),
    refetchInterval: (query) => (query.state.data?.finished === true ? false : 1_000),
  });
  const failures = useQuery({
    queryKey: ['bulk', job, 'failures'],
    queryFn: () => must(api.GET('/api/v1/bulk/{job}/failures', { params: { path: { job }, query: { limit: 20 } } })),
    enabled: state.data?.finished === true && state.data.failed > 0,
  });
  const shown = state.data;
  return (
    <Dialog title={shown?.finished === true ? 'Done' : 'Under way'} close={close}>
      {state.error !== null && <ProblemNote error={state.error} />}
      {shown === undefined ? (
        state.error === null && <Loading rows={2} />
      ) : (
        <>
          <progress max={shown.total} value={shown.done} aria-label="Runs that are done" />
          <p role="status">
            {shown.done.toLocaleString()} of {shown.total.toLocaleString()} runs, {shown.succeeded.toLocaleString()} as asked
            {shown.failed > 0 && `, ${shown.failed.toLocaleString()} left as they were`}.
          </p>
          <p className="quiet">
            {VERBS[shown.action]} {shown.person != null && <>by <Text of={shown.person} /></>}, <Ago at={shown.created_at} />: <Text of={shown.reason} />
          </p>
          {!shown.finished && <p className="quiet">You may close this: the server goes on with it.</p>}
          <ul className="sample">
            {failures.data?.failures.map((failure) => (
              <li key={failure.position}>
                <Link to={at('runs', failure.run_id)}><Id of={failure.run_id} /></Link> <Text of={failure.message} />
              </li>
            ))}
          </ul>
        </>
      )}
      <footer>
        <Button onClick={close}>Close</Button>
      </footer>
    </Dialog>
  );
}
