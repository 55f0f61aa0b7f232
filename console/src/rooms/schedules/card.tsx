import { useState } from 'react';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, intention, must } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Facts } from '../../parts/facts';
import { maybe, Reason } from '../../parts/form';
import { JsonView } from '../../parts/json';
import { Loading, ProblemNote } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Instant, Text } from '../../parts/text';
import { at, go, Link } from '../../route/router';
import { utc } from '../../text/span';

const SLOTS_SHOWN = 10;

export const scheduleQuery = (name: string) =>
  queryOptions({
    queryKey: ['schedules', name],
    queryFn: () => must(api.GET('/api/v1/schedules/{schedule}', { params: { path: { schedule: name } } })),
    refetchInterval: 30_000,
  });

export const nextQuery = (name: string) =>
  queryOptions({
    queryKey: ['schedules', name, 'next'],
    queryFn: () => must(api.GET('/api/v1/schedules/{schedule}/next', { params: { path: { schedule: name }, query: { count: 5 } } })),
    refetchInterval: 60_000,
  });

export function ScheduleCard({ name }: { name: string }) {
  const params = { path: { schedule: name } };
  const one = useQuery(scheduleQuery(name));
  const next = useQuery(nextQuery(name));
  const rights = { define: useMay('define'), operate: useMay('operate') };
  const [doing, setDoing] = useState<'pause' | 'trigger' | 'remove'>();
  const [key, setKey] = useState(intention);
  const dialog = { changes: 'schedules', close: () => setDoing(undefined) };
  if (one.data === undefined || next.isPending) return one.error === null ? <Loading rows={10} /> : <ProblemNote error={one.error} />;
  const schedule = one.data;
  return (
    <section className="pane" aria-label={`Schedule ${name}`}>
      <header className="pane-head">
        <h2>
          <Text of={schedule.name} />
        </h2>
        {rights.operate && <Button onClick={() => (setKey(intention()), setDoing('trigger'))}>Run now …</Button>}
        {rights.define && <Button onClick={() => setDoing('pause')}>{schedule.paused ? 'Resume …' : 'Pause …'}</Button>}
        {rights.define && schedule.origin === 'api' && <Button onClick={() => setDoing('remove')}>Remove …</Button>}
      </header>
      {schedule.note != null && (
        <p>
          <Text of={schedule.note} />
        </p>
      )}
      <div className="data slots">
        <div>
          <h3>The next five</h3>
          <Table
            caption="The next times"
            rows={next.data?.slots ?? []}
            keyOf={(slot) => slot.at}
            columns={[
              { title: schedule.timezone, cell: (slot) => <span title={utc(slot.starts_at)}><Text of={slot.local} /></span> },
              { title: 'Here', cell: (slot) => <Instant at={slot.starts_at} /> },
            ]}
          />
        </div>
        <div>
          <h3>The latest</h3>
          {schedule.slots.length === 0 ? (
            <p className="quiet">None has passed yet.</p>
          ) : (
            <Table
              caption="The latest times"
              rows={schedule.slots.slice(0, SLOTS_SHOWN)}
              keyOf={(slot) => slot.at}
              columns={[
                { title: 'Time', cell: (slot) => <Instant at={slot.at} /> },
                {
                  title: 'What became of it',
                  cell: (slot) => (
                    <>
                      {slot.run_id == null ? slot.state : <Link to={at('runs', slot.run_id)}>{slot.state}</Link>}
                      {slot.note != null && <span className="quiet"> <Text of={slot.note} /></span>}
                    </>
                  ),
                },
              ]}
            />
          )}
        </div>
      </div>
      <Facts
        of={[
          ['Workflow', <Link to={at('workflows', schedule.workflow)}><Text of={schedule.workflow} /></Link>],
          ['Cron', <code>{schedule.cron}</code>],
          ['Daylight saving', `a slot that comes twice or not at all: ${schedule.dst}`],
          ['While one still runs', schedule.overlap.replaceAll('_', ' ')],
          ['Made', schedule.origin === 'workflow' ? 'in the workflow’s file; change it there' : 'here'],
        ]}
      />
      <h3>Inputs</h3>
      <JsonView value={schedule.inputs} what="the schedule’s inputs" />
      {doing === 'trigger' && (
        <Confirm
          title="Run it now"
          verb="Run now"
          what="A run starts at once, with the schedule’s inputs. Its own times stay as they are."
          act={async () => {
            const made = await must(api.POST('/api/v1/schedules/{schedule}/trigger', { params, headers: key }));
            go(at('runs', made.run_id));
          }}
          {...dialog}
        />
      )}
      {doing === 'pause' && (
        <Confirm
          title={schedule.paused ? 'Resume this schedule' : 'Pause this schedule'}
          verb={schedule.paused ? 'Resume' : 'Pause'}
          what={schedule.paused ? 'Slots count from now on; those that passed meanwhile are not made up for.' : 'No slot runs until it is resumed.'}
          act={async (form) => {
            await must(
              schedule.paused
                ? api.POST('/api/v1/schedules/{schedule}/resume', { params })
                : api.POST('/api/v1/schedules/{schedule}/pause', { params, body: { reason: maybe(form, 'reason') } }),
            );
          }}
          {...dialog}
        >
          {!schedule.paused && <Reason required={false} />}
        </Confirm>
      )}
      {doing === 'remove' && (
        <Confirm
          title="Remove this schedule"
          verb="Remove"
          danger
          what="It starts nothing any more. Runs that it has started stay."
          act={async () => {
            await must(api.DELETE('/api/v1/schedules/{schedule}', { params }));
            go('/schedules');
          }}
          {...dialog}
        />
      )}
    </section>
  );
}
