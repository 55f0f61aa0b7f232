/** The strip above the runs: what has not ended, what waits for people and for workers, and what is wrong. */

import { useQuery } from '@tanstack/react-query';
import { toneOf, wordOf } from '../../parts/state';
import { Prose, Text, Took } from '../../parts/text';
import { at, Link } from '../../route/router';
import { backlog, statusQuery, tallies, type Status } from './status';

const PROBLEMS_SHOWN = 3;

export function StatusStrip() {
  const status = useQuery(statusQuery);
  // A strip that cannot be had leaves the list as it is; the list says itself what is wrong.
  if (status.data === undefined) return <div className="strip" aria-hidden="true" />;
  return (
    <section className="strip" aria-label="How everything stands">
      <Active runs={status.data.runs} />
      <p className="strip-line">
        <People status={status.data} />
        <Waiting queues={status.data.queues} />
      </p>
      {status.data.problems.length > 0 && (
        <ul className="strip-problems">
          {status.data.problems.slice(0, PROBLEMS_SHOWN).map((problem, index) => (
            <li key={index}>
              <Prose of={problem.text} />
            </li>
          ))}
          {status.data.problems.length > PROBLEMS_SHOWN && <li>and {status.data.problems.length - PROBLEMS_SHOWN} more</li>}
        </ul>
      )}
    </section>
  );
}

function Active({ runs }: { runs: Status['runs'] }) {
  const found = tallies(runs);
  if (found.length === 0) return <p className="quiet">No run is under way.</p>;
  return (
    <>
      <div className="shares" aria-hidden="true">
        {found.map(({ state, runs }) => (
          <span key={state} className={`share ${toneOf(state)}`} style={{ flexGrow: runs }} />
        ))}
      </div>
      <ul className="strip-line">
        {found.map(({ state, runs }) => (
          <li key={state}>
            <Link to={`/runs?state=${state}`}>
              <span className={`share-mark ${toneOf(state)}`} aria-hidden="true" />
              <strong>{runs.toLocaleString()}</strong> {wordOf(state)}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function People({ status }: { status: Status }) {
  const oldest = status.oldest[0];
  if (status.need_a_person === 0) return <span className="quiet">Nothing waits for a person.</span>;
  return (
    <span>
      <strong>{status.need_a_person.toLocaleString()}</strong> wait{status.need_a_person === 1 ? 's' : ''} for a person
      {oldest !== undefined && (
        <>
          {' '}
          · oldest{' '}
          <Link to={at('runs', oldest.run_id)}>
            <Text of={oldest.subject ?? oldest.workflow} />
          </Link>
          , for <Took from={oldest.created_at} />
        </>
      )}
    </span>
  );
}

function Waiting({ queues }: { queues: Status['queues'] }) {
  const { ready, running, oldest } = backlog(queues);
  return (
    <span>
      <Link to="/workers">
        {running.toLocaleString()} step{running === 1 ? '' : 's'} at workers, {ready.toLocaleString()} ready
      </Link>
      {oldest !== undefined && (
        <>
          , the oldest for <Took from={oldest} />
        </>
      )}
    </span>
  );
}
