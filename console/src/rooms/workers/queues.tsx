/** Queues: the steps that wait in each, the workers that take from it, and why steps wait where no worker does. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Loaded } from '../../parts/loaded';
import { Command, Empty } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Text, Took, useNow } from '../../parts/text';
import { at, Link } from '../../route/router';
import { sentence } from '../../text/why';
import { commandFor, isUnserved } from './fleet';
import { unassignedQuery, type Queue } from './query';

export function Queues({ queues }: { queues: Queue[] }) {
  if (queues.length === 0) {
    return (
      <Empty title="Nothing is queued">
        <p>A queue appears when a step waits in it or a worker takes from it. A step names its queue in the workflow’s file.</p>
      </Empty>
    );
  }
  const unserved = queues.filter(isUnserved);
  return (
    <>
      <Table
        caption="Queues by name"
        rows={queues}
        keyOf={(queue) => queue.queue}
        columns={[
          {
            title: 'Queue',
            cell: (queue) => (
              <>
                <strong>
                  <Text of={queue.queue} />
                </strong>
                {isUnserved(queue) && <span className="tag bad">no worker</span>}
              </>
            ),
          },
          { title: 'Ready', number: true, cell: (queue) => <Counted of={queue.ready} what="ready" /> },
          { title: 'Oldest', cell: (queue) => (queue.oldest_ready_at == null ? <span className="nothing quiet">–</span> : <>waits <Took from={queue.oldest_ready_at} /></>) },
          { title: 'Running', number: true, cell: (queue) => <Counted of={queue.running} what="running" /> },
          { title: 'Delayed', number: true, cell: (queue) => <Counted of={queue.delayed} what="delayed" /> },
          { title: 'Workers', number: true, cell: (queue) => <Counted of={queue.workers} what={queue.workers === 1 ? 'worker' : 'workers'} /> },
        ]}
      />
      {unserved.map((queue) => (
        <div key={queue.queue} className="advice">
          <p>
            {queue.ready === 1 ? 'A step waits' : `${queue.ready.toLocaleString()} steps wait`} in “<Text of={queue.queue} />”, and no
            worker takes from it:
          </p>
          <Unassigned queue={queue.queue} />
        </div>
      ))}
    </>
  );
}

/** The command that serves the queue, made for the runs that wait in it; and which those are, and why. */
function Unassigned({ queue }: { queue: string }) {
  const [open, setOpen] = useState(false);
  const waiting = useQuery(unassignedQuery(queue));
  const causes = (waiting.data ?? []).flatMap(({ why }) => why.because);
  const now = useNow();
  function toggled(next: boolean) {
    setOpen(next);
    if (next) void waiting.refetch();
  }
  return (
    <>
      <Command text={commandFor(queue, causes)} />
      <details className="effect" onToggle={(event) => toggled(event.currentTarget.open)}>
        <summary>Which runs wait, and why</summary>
        {open && (
          <Loaded query={waiting} rows={2}>
            {(list) =>
              list.length === 0 ? (
                <p className="quiet">None of the newest runs says that it waits for this queue.</p>
              ) : (
                <ul className="unassigned">
                  {list.map(({ run, why }) => (
                    <li key={run.run_id}>
                      <Link to={at('runs', run.run_id)}>
                        <Text of={run.subject ?? run.workflow} />
                      </Link>
                      {why.because.map((cause, index) => (
                        <span key={index} className="quiet">
                          {' '}
                          <Text of={sentence(cause, now)} />
                        </span>
                      ))}
                    </li>
                  ))}
                </ul>
              )
            }
          </Loaded>
        )}
      </details>
    </>
  );
}

/** A number whose word stands in the table's head, and beside it where there is none: on a phone. */
function Counted({ of, what }: { of: number; what: string }) {
  return (
    <span className={of === 0 ? 'nothing' : undefined}>
      {of.toLocaleString()}
      <span className="on-phone"> {what}</span>
    </span>
  );
}
