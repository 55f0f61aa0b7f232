import { Command, Empty } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Text, Took } from '../../parts/text';
import { commandFor, isUnserved } from './fleet';
import type { Queue } from './query';

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
          <Command text={commandFor(queue.queue)} />
        </div>
      ))}
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
