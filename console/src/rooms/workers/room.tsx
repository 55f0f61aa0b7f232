/** Workers: who takes steps, what they can do, how busy they are, and what waits for them. */

import { useQuery } from '@tanstack/react-query';
import { useMay } from '../../api/session';
import { useRowKeys } from '../../keyboard/rows';
import { Load } from '../../parts/load';
import { Loaded } from '../../parts/loaded';
import { Empty, Loading } from '../../parts/notes';
import { Room } from '../../parts/room';
import { useSettled } from '../../parts/settled';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link, useAddress, useParam, withQuery } from '../../route/router';
import { Enrolment } from './enrolment';
import { commandFor, isAt, placesOf } from './fleet';
import { WorkerMark } from './mark';
import { WorkerCard } from './one';
import { identitiesQuery, queuesQuery, workerQuery, workersQuery, type Worker } from './query';
import { Queues } from './queues';

export function WorkersRoom({ selected }: { selected: string | undefined }) {
  const [gone, setGone] = useParam('gone');
  const workers = useQuery(workersQuery(gone === 'too'));
  const queues = useQuery(queuesQuery);
  const administers = useMay('administer');
  const identities = useQuery({ ...identitiesQuery, enabled: administers });
  const one = useQuery({ ...workerQuery(selected ?? ''), enabled: selected !== undefined });
  const settled = useSettled(workers.isPending, queues.isPending, administers && identities.isPending, selected !== undefined && one.isPending);
  useRowKeys('Workers', 'worker');
  return (
    <Room
      title="Workers"
      actions={
        <label className="check">
          <input type="checkbox" checked={gone === 'too'} onChange={(event) => setGone(event.target.checked ? 'too' : '')} />
          <span>Also those that have gone</span>
        </label>
      }
    >
      {settled ? (
        <>
          <section>
            <Loaded query={workers} rows={4}>
              {(list) => (list.length === 0 ? <NoWorkers /> : <Places workers={list} selected={selected} />)}
            </Loaded>
            {selected !== undefined && <WorkerCard key={selected} session={selected} />}
          </section>
          <section>
            <header className="section-head">
              <h2>Queues</h2>
            </header>
            <Loaded query={queues} rows={2}>
              {(list) => <Queues queues={list} />}
            </Loaded>
          </section>
          {administers && <Enrolment />}
        </>
      ) : (
        <Loading rows={12} />
      )}
    </Room>
  );
}

function NoWorkers() {
  return (
    <Empty title="No worker is connected" command={commandFor()}>
      <p>
        A worker runs the tasks of steps; any program can be a task. It asks the server for work, so the server needs no way to
        reach it. Start one wherever the programs are:
      </p>
    </Empty>
  );
}

/** The fleet by environment and network segment, where certificates say so; one of them can be looked at alone. */
function Places({ workers, selected }: { workers: Worker[]; selected: string | undefined }) {
  const [chosen, choose] = useParam('at');
  const places = placesOf(workers);
  const place = places.find((each) => `${each.kind}:${each.name}` === chosen);
  const shown = place === undefined ? workers : workers.filter((worker) => isAt(worker, place.kind, place.name));
  return (
    <>
      {places.length > 0 && (
        <ul className="places" aria-label="The fleet by environment and network segment">
          {places.map((each) => {
            const id = `${each.kind}:${each.name}`;
            return (
              <li key={id}>
                <button type="button" className="place" aria-pressed={each === place} onClick={() => choose(each === place ? '' : id)}>
                  <span className="quiet">{each.kind}</span> <strong>{each.name === '*' ? 'all' : <Text of={each.name} />}</strong>
                  <span className="quiet">
                    {each.workers === 1 ? '1 worker' : `${each.workers.toLocaleString()} workers`}, {each.running.toLocaleString()} of {each.slots.toLocaleString()} slots
                  </span>
                </button>
              </li>
            );
          })}
        </ul>
      )}
      <Fleet workers={shown} selected={selected} />
    </>
  );
}

function Fleet({ workers, selected }: { workers: Worker[]; selected: string | undefined }) {
  // What the list is narrowed to stays while one of it is looked at.
  const { query } = useAddress();
  return (
    <Table
      caption="Workers, those last heard of first"
      className="workers"
      rows={workers}
      keyOf={(worker) => worker.session_id}
      isHere={(worker) => worker.session_id === selected}
      columns={[
        {
          title: 'Worker',
          className: 'c-name',
          cell: (worker) => (
            <>
              <Link to={withQuery(at('workers', worker.session_id), query)} className="row-link">
                <Text of={worker.worker} />
              </Link>
              {worker.shared === true && <span className="tag">in the server</span>}
            </>
          ),
        },
        { title: 'State', cell: (worker) => <WorkerMark of={worker} /> },
        { title: 'Load', cell: (worker) => <Load taken={worker.running} of={worker.slots} label={`Slots of ${worker.worker} that are taken`} /> },
        { title: 'Queues', cell: (worker) => <Text of={worker.queues.join(', ')} /> },
        ...(workers.some((worker) => worker.terms != null) ? [{ title: 'Where', cell: (worker: Worker) => <Text of={whereOf(worker)} /> }] : []),
        { title: 'Tasks', className: 'c-tasks quiet', cell: (worker) => <Tasks of={worker} /> },
        { title: 'Last heard', cell: (worker) => <Ago at={worker.last_heartbeat_at} /> },
      ]}
    />
  );
}

function whereOf({ terms }: Worker): string {
  if (terms == null) return '–';
  const environments = terms.environments.map((name) => (name === '*' ? 'all' : name));
  return [environments.join(', '), (terms.segments ?? []).join(', ')].filter(Boolean).join(' · ');
}

const TASKS_SHOWN = 3;

function Tasks({ of }: { of: Worker }) {
  if (of.tasks == null) return 'any';
  const more = of.tasks.length - TASKS_SHOWN;
  return (
    <>
      <Text of={of.tasks.slice(0, TASKS_SHOWN).join(', ')} />
      {more > 0 && <span title={of.tasks.join(', ')}> +{more}</span>}
    </>
  );
}
