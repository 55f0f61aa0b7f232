/** One worker: what it can do, and the steps that it has. */

import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Refusal } from '../../api/client';
import { Facts } from '../../parts/facts';
import { Load } from '../../parts/load';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Ago, Id, Instant, Text, Took } from '../../parts/text';
import { at, Link } from '../../route/router';
import { WorkerActions } from './actions';
import { hindrancesOf, otherCapabilities, provenControls, provenProfiles } from './fleet';
import { WorkerMark } from './mark';
import { workerQuery, type Worker } from './query';

export function WorkerCard({ session }: { session: string }) {
  const one = useQuery(workerQuery(session));
  if (one.error instanceof Refusal && one.error.problem.status === 404) {
    return (
      <Empty title="There is no such worker">
        <p>
          What is known of a worker is forgotten some time after it has gone. <Link to="/workers">See all workers</Link>
        </p>
      </Empty>
    );
  }
  return (
    <div className="pane">
      <Loaded query={one} rows={12}>
        {(worker) => (
          <>
            <header className="pane-head">
              <h2>
                <Text of={worker.worker} />
              </h2>
              <WorkerMark of={worker} />
              <WorkerActions worker={worker} />
            </header>
            <Facts
              of={[
                ['Session', <code className="wrap">{worker.session_id}</code>],
                ['Load', <Load taken={worker.running} of={worker.slots} label="Slots that are taken" />],
                ...(hindrancesOf(worker).length === 0 ? [] : [['Kept from work', <Hindrances of={worker} />] satisfies [string, ReactNode]]),
                ['Queues', <Words of={worker.queues} />],
                ['Tasks', worker.tasks == null ? 'any: it named none' : <Terms of={worker.tasks} none="none" />],
                ['Environments', <Terms of={worker.terms?.environments} none="all: it has an API key, and named none" />],
                ['Network segments', <Terms of={worker.terms?.segments} none="–" />],
                ['Sandbox', <Sandbox of={worker} />],
                ['Capabilities', <Terms of={otherCapabilities(worker)} none="none" />],
                ['Labels', <Terms of={Object.entries(worker.labels ?? {}).map(([name, value]) => `${name}=${value}`)} none="none" />],
                ['Build', worker.build_id == null ? '–' : <Text of={worker.build_id} />],
                ['Last heard', <Ago at={worker.last_heartbeat_at} />],
                ['Lease ends', <Instant at={worker.lease_expires_at} />],
                ['Since', <Instant at={worker.registered_at} />],
                ['Serves', worker.shared === true ? 'all tenants: it is inside a server' : 'this tenant'],
              ]}
            />
            <section>
              <h3>Steps that it has</h3>
              {worker.holds.length === 0 ? (
                <p className="quiet">None now.</p>
              ) : (
                <Table
                  caption="Steps that the worker has, the oldest first"
                  rows={worker.holds}
                  keyOf={(held) => `${held.run_id} ${held.position}`}
                  columns={[
                    {
                      title: 'Run',
                      cell: (held) => (
                        <Link to={`${at('runs', held.run_id)}?step=${held.position}`} className="row-link">
                          <Id of={held.run_id} />
                        </Link>
                      ),
                    },
                    { title: 'Step', cell: (held) => (held.step == null ? `step ${held.position + 1}` : <Text of={held.step} />) },
                    { title: 'Attempt', cell: (held) => `attempt ${held.attempt}` },
                    { title: 'For', cell: (held) => (held.since == null ? '–' : <Took from={held.since} />) },
                  ]}
                />
              )}
            </section>
          </>
        )}
      </Loaded>
    </div>
  );
}

/** What is wrong with it, or who keeps work from it; since when, and until when. */
function Hindrances({ of }: { of: Worker }) {
  return (
    <>
      {hindrancesOf(of).map((why) => (
        <div key={why}>
          <Text of={why} />
        </div>
      ))}
      {of.fault != null && (
        <span className="quiet">
          last seen <Instant at={of.fault.since} />
        </span>
      )}
      {of.maintenance?.until != null && (
        <span className="quiet">
          it ends <Instant at={of.maintenance.until} />
        </span>
      )}
    </>
  );
}

/** What a certificate allows, in words: `*` is everything. */
function Terms({ of, none }: { of: readonly string[] | undefined; none: string }) {
  if (of === undefined || of.length === 0) return <span className="quiet">{none}</span>;
  return <Words of={of.map((name) => (name === '*' ? 'all' : name))} />;
}

/** Profiles whose controls the host has been seen to keep; commands of other profiles are not given to it. */
function Sandbox({ of }: { of: Worker }) {
  const proven = provenProfiles(of);
  const controls = provenControls(of);
  const allowed = of.terms?.profiles ?? [];
  const missing = allowed.filter((name) => name !== '*' && !proven.includes(name));
  return (
    <>
      {proven.length === 0 ? (
        <span className="quiet">runs no commands: no profile’s controls are proven here</span>
      ) : (
        <>
          every control proven for <Words of={proven} />
        </>
      )}
      {missing.length > 0 && (
        <>
          {' '}
          <span className="tag bad">allowed, not proven</span> <Words of={missing} />
        </>
      )}
      {controls.length > 0 && (
        <details>
          <summary>{controls.length} controls, each tried out on this host when the worker started</summary>
          <Words of={controls} />
        </details>
      )}
    </>
  );
}

function Words({ of }: { of: readonly string[] }) {
  return (
    <span className="words">
      {of.map((word) => (
        <code key={word} className="tag">
          <Text of={word} />
        </code>
      ))}
    </span>
  );
}
