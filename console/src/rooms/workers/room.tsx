/** Workers: who takes steps, what they can do, how busy they are, and what waits for them. */

import { useQuery } from '@tanstack/react-query';
import { useRowKeys } from '../../keyboard/rows';
import { Load } from '../../parts/load';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Room } from '../../parts/room';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link, useParam } from '../../route/router';
import { commandFor } from './fleet';
import { WorkerMark } from './mark';
import { WorkerCard } from './one';
import { queuesQuery, workersQuery, type Worker } from './query';
import { Queues } from './queues';

export function WorkersRoom({ selected }: { selected: string | undefined }) {
  const [gone, setGone] = useParam('gone');
  const workers = useQuery(workersQuery(gone === 'too'));
  const queues = useQuery(queuesQuery);
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
      <section>
        <Loaded query={workers} rows={4}>
          {(list) => (list.length === 0 ? <NoWorkers /> : <Fleet workers={list} selected={selected} />)}
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

function Fleet({ workers, selected }: { workers: Worker[]; selected: string | undefined }) {
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
              <Link to={at('workers', worker.session_id)} className="row-link">
                <Text of={worker.worker} />
              </Link>
              {worker.shared === true && <span className="tag">in the server</span>}
            </>
          ),
        },
        { title: 'State', cell: (worker) => <WorkerMark of={worker} /> },
        { title: 'Load', cell: (worker) => <Load taken={worker.running} of={worker.slots} label={`Slots of ${worker.worker} that are taken`} /> },
        { title: 'Queues', cell: (worker) => <Text of={worker.queues.join(', ')} /> },
        { title: 'Tasks', className: 'c-tasks quiet', cell: (worker) => <Tasks of={worker} /> },
        { title: 'Last heard', cell: (worker) => <Ago at={worker.last_heartbeat_at} /> },
      ]}
    />
  );
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
