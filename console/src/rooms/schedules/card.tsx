import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Facts } from '../../parts/facts';
import { FormDialog, maybe, Reason } from '../../parts/form';
import { JsonView } from '../../parts/json';
import { Loading, ProblemNote } from '../../parts/notes';
import { Instant, Text } from '../../parts/text';
import { at, go, Link } from '../../route/router';

export function ScheduleCard({ name }: { name: string }) {
  const params = { path: { schedule: name } };
  const one = useQuery({
    queryKey: ['schedules', name],
    queryFn: () => must(api.GET('/api/v1/schedules/{schedule}', { params })),
    refetchInterval: 30_000,
  });
  const next = useQuery({
    queryKey: ['schedules', name, 'next'],
    queryFn: () => must(api.GET('/api/v1/schedules/{schedule}/next', { params: { ...params, query: { count: 5 } } })),
    refetchInterval: 60_000,
  });
  const queries = useQueryClient();
  const rights = { define: useMay('define'), operate: useMay('operate') };
  const [doing, setDoing] = useState<'pause' | 'trigger' | 'remove'>();
  const [key, setKey] = useState(intention);
  const close = () => setDoing(undefined);
  const again = () => void queries.invalidateQueries({ queryKey: ['schedules'] });
  if (one.data === undefined) return one.error === null ? <Loading /> : <ProblemNote error={one.error} />;
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
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">{schedule.timezone}</th>
                <th scope="col">Here</th>
              </tr>
            </thead>
            <tbody>
              {next.data?.slots.map((slot) => (
                <tr key={slot.at}>
                  <td>
                    <Text of={slot.local} />
                  </td>
                  <td>
                    <Instant at={slot.starts_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <div>
          <h3>The latest</h3>
          {schedule.slots.length === 0 && <p className="quiet">None has passed yet.</p>}
          <table className="rows">
            <tbody>
              {schedule.slots.slice(0, 10).map((slot) => (
                <tr key={slot.at}>
                  <td>
                    <Instant at={slot.at} />
                  </td>
                  <td>
                    {slot.run_id == null ? slot.state : <Link to={at('runs', slot.run_id)}>{slot.state}</Link>}
                    {slot.note != null && (
                      <span className="quiet">
                        {' '}
                        <Text of={slot.note} />
                      </span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
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
        <FormDialog
          title="Run it now"
          verb="Run now"
          close={close}
          act={async () => {
            const made = await must(api.POST('/api/v1/schedules/{schedule}/trigger', { params, headers: key }));
            go(at('runs', made.run_id));
          }}
        >
          <p>A run starts at once, with the schedule’s inputs. Its own times stay as they are.</p>
        </FormDialog>
      )}
      {doing === 'pause' && (
        <FormDialog
          title={schedule.paused ? 'Resume this schedule' : 'Pause this schedule'}
          verb={schedule.paused ? 'Resume' : 'Pause'}
          close={close}
          act={async (form) => {
            await must(
              schedule.paused
                ? api.POST('/api/v1/schedules/{schedule}/resume', { params })
                : api.POST('/api/v1/schedules/{schedule}/pause', { params, body: { reason: maybe(form, 'reason') } }),
            );
            again();
          }}
        >
          <p>{schedule.paused ? 'Slots count from now on; those that passed meanwhile are not made up for.' : 'No slot runs until it is resumed.'}</p>
          {!schedule.paused && <Reason required={false} />}
        </FormDialog>
      )}
      {doing === 'remove' && (
        <FormDialog
          title="Remove this schedule"
          verb="Remove"
          danger
          close={close}
          act={async () => {
            await must(api.DELETE('/api/v1/schedules/{schedule}', { params }));
            again();
            go('/schedules');
          }}
        >
          <p>It starts nothing any more. Runs that it has started stay.</p>
        </FormDialog>
      )}
    </section>
  );
}
