/** Schedules: what starts by itself, and when, in the schedule's zone and in the viewer's. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { CreateSchedule } from './create';
import { ScheduleCard } from './card';

const IN_A_FILE = `on:
  schedule:
    - { name: nightly, cron: "30 2 * * *", timezone: Europe/Berlin }`;

export function SchedulesRoom({ selected }: { selected: string | undefined }) {
  const list = useQuery({
    queryKey: ['schedules'],
    queryFn: () => must(api.GET('/api/v1/schedules', { params: { query: { limit: 200 } } })),
    refetchInterval: 30_000,
  });
  const defines = useMay('define');
  const [creating, setCreating] = useState(false);
  return (
    <div className="room">
      <header className="room-head">
        <h1>Schedules</h1>
        {defines && (
          <div className="room-actions">
            <Button onClick={() => setCreating(true)}>New schedule …</Button>
          </div>
        )}
      </header>
      {list.error !== null && <ProblemNote error={list.error} />}
      {list.data === undefined ? (
        list.error === null && <Loading />
      ) : list.data.schedules.length === 0 ? (
        <Empty title="No schedules yet" command={IN_A_FILE}>
          <p>A schedule starts a workflow at times. Make one here, or write it into the workflow’s file:</p>
        </Empty>
      ) : (
        <Table schedules={list.data.schedules} selected={selected} />
      )}
      {selected !== undefined && <ScheduleCard name={selected} />}
      {creating && <CreateSchedule close={() => setCreating(false)} />}
    </div>
  );
}

function Table({ schedules, selected }: { schedules: Schema['ScheduleView'][]; selected: string | undefined }) {
  return (
    <table className="rows schedules">
      <caption className="unseen">Schedules by name</caption>
      <thead>
        <tr>
          <th scope="col">Schedule</th>
          <th scope="col">Workflow</th>
          <th scope="col">When</th>
          <th scope="col">Next, in its zone</th>
          <th scope="col">From now</th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((schedule) => (
          <tr key={schedule.schedule_id} className={schedule.name === selected ? 'here' : ''}>
            <td>
              <Link to={at('schedules', schedule.name)} className="row-link">
                <Text of={schedule.name} />
              </Link>
              {schedule.paused && <span className="tag warn">paused</span>}
            </td>
            <td>
              <Text of={schedule.workflow} />
            </td>
            <td>
              <Text of={schedule.description} /> <code className="quiet">{schedule.cron}</code>
            </td>
            <td>{schedule.next == null || schedule.paused ? '–' : <Text of={schedule.next.local} />}</td>
            <td>{schedule.next == null || schedule.paused ? '–' : <Ago at={schedule.next.starts_at} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
