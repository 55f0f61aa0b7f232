/** Schedules: what starts by itself, and when, in the schedule's zone and in the viewer's. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { useRowKeys } from '../../keyboard/rows';
import { Button } from '../../parts/button';
import { Loaded } from '../../parts/loaded';
import { Empty, Loading } from '../../parts/notes';
import { Room } from '../../parts/room';
import { useSettled } from '../../parts/settled';
import { Table } from '../../parts/table';
import { Ago, Instant, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { utc } from '../../text/span';
import { CreateSchedule } from './create';
import { nextQuery, ScheduleCard, scheduleQuery } from './card';

const IN_A_FILE = `on:
  schedule:
    - name: nightly
      cron: "30 2 * * *"
      timezone: Europe/Berlin`;

export function SchedulesRoom({ selected }: { selected: string | undefined }) {
  const list = useQuery({
    queryKey: ['schedules'],
    queryFn: () => must(api.GET('/api/v1/schedules', { params: { query: { limit: 200 } } })),
    refetchInterval: 30_000,
  });
  const defines = useMay('define');
  const [creating, setCreating] = useState(false);
  const chosen = { enabled: selected !== undefined };
  const one = useQuery({ ...scheduleQuery(selected ?? ''), ...chosen });
  const next = useQuery({ ...nextQuery(selected ?? ''), ...chosen });
  const settled = useSettled(list.isPending, chosen.enabled && (one.isPending || next.isPending));
  useRowKeys('Schedules', 'schedule');
  return (
    <Room title="Schedules" actions={defines && <Button onClick={() => setCreating(true)}>New schedule …</Button>}>
      {settled ? (
        <Loaded query={list}>
          {({ schedules }) =>
            schedules.length === 0 ? (
              <Empty title="No schedules yet" command={IN_A_FILE}>
                <p>A schedule starts a workflow at times. Make one here, or write it into the workflow’s file:</p>
              </Empty>
            ) : (
              <ScheduleTable schedules={schedules} selected={selected} />
            )
          }
        </Loaded>
      ) : (
        <Loading rows={10} />
      )}
      {settled && selected !== undefined && <ScheduleCard key={selected} name={selected} />}
      {creating && <CreateSchedule close={() => setCreating(false)} />}
    </Room>
  );
}

/** When it comes next, while it is not paused. */
function nextOf({ next, paused }: Schema['ScheduleView']) {
  return paused || next == null ? undefined : next;
}

const NONE = <span className="nothing quiet">–</span>;

function ScheduleTable({ schedules, selected }: { schedules: Schema['ScheduleView'][]; selected: string | undefined }) {
  return (
    <Table
      caption="Schedules by name"
      className="schedules"
      rows={schedules}
      keyOf={(schedule) => schedule.schedule_id}
      isHere={(schedule) => schedule.name === selected}
      columns={[
        {
          title: 'Schedule',
          cell: (schedule) => (
            <>
              <Link to={at('schedules', schedule.name)} className="row-link">
                <Text of={schedule.name} />
              </Link>
              {schedule.paused && <span className="tag warn">paused</span>}
            </>
          ),
        },
        { title: 'Workflow', cell: (schedule) => <Text of={schedule.workflow} /> },
        { title: 'When', cell: (schedule) => <><Text of={schedule.description} /> <code className="quiet">{schedule.cron}</code></> },
        {
          title: 'Next, in its zone',
          cell: (schedule) => {
            const next = nextOf(schedule);
            return next === undefined ? NONE : <span title={utc(next.starts_at)}><Text of={next.local} /></span>;
          },
        },
        {
          title: 'Here',
          cell: (schedule) => {
            const next = nextOf(schedule);
            return next === undefined ? NONE : <><Instant at={next.starts_at} /> <span className="quiet"><Ago at={next.starts_at} /></span></>;
          },
        },
      ]}
    />
  );
}
