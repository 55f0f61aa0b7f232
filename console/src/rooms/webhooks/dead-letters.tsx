import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { FormDialog } from '../../parts/form';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';

/** Messages of every kind that were given up. The section is there only when there are any. */
export function DeadLetters() {
  const list = useQuery({
    queryKey: ['dead-letters'],
    queryFn: () => must(api.GET('/api/v1/dead-letters', { params: { query: { limit: 50 } } })),
  });
  const operates = useMay('operate');
  const queries = useQueryClient();
  const [doing, setDoing] = useState<Schema['ReplayDead']>();
  const letters = list.data?.dead_letters ?? [];
  if (letters.length === 0) return null;
  return (
    <section>
      <header className="section-head">
        <h2>Given up</h2>
        {operates && <Button onClick={() => setDoing({ all: true })}>Send all again …</Button>}
      </header>
      <table className="rows">
        <caption className="unseen">Messages that were given up</caption>
        <thead>
          <tr>
            <th scope="col">To</th>
            <th scope="col">Run</th>
            <th scope="col">Given up</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {letters.map((letter) => (
            <tr key={letter.message_id}>
              <td>
                <Text of={letter.destination} />
              </td>
              <td>
                <Link to={at('runs', letter.run_id)}>run</Link>
              </td>
              <td>
                <Ago at={letter.dead_at} />
              </td>
              <td>
                <Text of={letter.error ?? ''} /> <span className="quiet">after {letter.attempts} tries</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {doing !== undefined && (
        <FormDialog
          title="Send all again"
          verb="Send again"
          close={() => setDoing(undefined)}
          act={async () => {
            const { queued } = await must(api.POST('/api/v1/dead-letters/replay', { body: doing }));
            void queries.invalidateQueries({ queryKey: ['dead-letters'] });
            return `${queued} are on their way.`;
          }}
        >
          <p>Every message that was given up is tried again, a thousand at most.</p>
        </FormDialog>
      )}
    </section>
  );
}
