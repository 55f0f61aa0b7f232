import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';

/** Messages of every kind that were given up. The section is there only when there are any. */
export function DeadLetters() {
  const list = useQuery({
    queryKey: ['dead-letters'],
    queryFn: () => must(api.GET('/api/v1/dead-letters', { params: { query: { limit: 50 } } })),
  });
  const operates = useMay('operate');
  const [doing, setDoing] = useState<Schema['ReplayDead']>();
  const letters = list.data?.dead_letters ?? [];
  if (letters.length === 0) return null;
  return (
    <Section title="Given up" action={operates && <Button onClick={() => setDoing({ all: true })}>Send all again …</Button>}>
      <Table
        caption="Messages that were given up"
        rows={letters}
        keyOf={(letter) => letter.message_id}
        columns={[
          { title: 'To', cell: (letter) => <Text of={letter.destination} /> },
          { title: 'Run', cell: (letter) => <Link to={at('runs', letter.run_id)}>run</Link> },
          { title: 'Given up', cell: (letter) => <Ago at={letter.dead_at} /> },
          { title: 'Why', cell: (letter) => <><Text of={letter.error ?? ''} /> <span className="quiet">after {letter.attempts} tries</span></> },
        ]}
      />
      {doing !== undefined && (
        <Confirm
          title="Send all again"
          verb="Send again"
          what="Every message that was given up is tried again, a thousand at most."
          changes="dead-letters"
          act={async () => {
            const { queued } = await must(api.POST('/api/v1/dead-letters/replay', { body: doing }));
            return `${queued} are on their way.`;
          }}
          close={() => setDoing(undefined)}
        />
      )}
    </Section>
  );
}
