/** One action on many runs: look first, then act on exactly what was seen. The server does it, not this page. */

import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Check, FormDialog, Reason, Select, text } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { State } from '../../parts/state';
import { Id, Text } from '../../parts/text';
import { bulkFilter, inWords, type RunFilter } from './filter';

type Action = Schema['BulkAction'];

const EFFECT: Record<Action, string> = {
  cancel: 'Nothing further starts in them; what is running is told to stop.',
  retry: 'The step that stopped each of them is tried again. For a run that has ended, a new one takes over what it achieved.',
  resume: 'Their pause ends, and they go on where they stood.',
};

export function BulkDialog({ filter, started, close }: { filter: RunFilter; started: (job: string) => void; close: () => void }) {
  const [action, setAction] = useState<Action>('cancel');
  const [key] = useState(intention);
  const queries = useQueryClient();
  const preview = useQuery({
    queryKey: ['bulk-preview', filter, action],
    queryFn: () => must(api.POST('/api/v1/bulk/preview', { body: { filter: bulkFilter(filter), action } })),
    staleTime: Infinity,
    gcTime: 0,
  });
  const count = preview.data?.count;
  if (count === undefined || count === 0) {
    return (
      <Dialog title="Act on all matching runs" close={close}>
        {preview.error !== null ? <ProblemNote error={preview.error} /> : count === 0 ? <p>No run matches now.</p> : <Loading rows={4} />}
        <footer>
          <Button onClick={close}>Close</Button>
        </footer>
      </Dialog>
    );
  }
  const runs = `${count.toLocaleString()} run${count === 1 ? '' : 's'}`;
  const verb = { cancel: 'Cancel', retry: 'Retry', resume: 'Resume' }[action];
  async function start(form: FormData) {
    const made = await must(
      api.POST('/api/v1/bulk', {
        headers: key,
        body: {
          action,
          filter: bulkFilter(filter),
          expected_count: count!,
          reason: text(form, 'reason'),
          rollback: action === 'cancel' && form.has('rollback'),
        },
      }),
    );
    void queries.invalidateQueries({ queryKey: ['runs'] });
    started(made.job_id);
  }
  return (
    <FormDialog title="Act on all matching runs" verb={`${verb} ${runs}`} danger={action === 'cancel'} close={close} act={start}>
      <p>
        <strong>{runs}</strong> {count === 1 ? 'matches' : 'match'} now: <Text of={inWords(filter)} />.
      </p>
      <ul className="sample">
        {preview.data!.sample.slice(0, 5).map((run) => (
          <li key={run.run_id}>
            <State of={run.state} /> <Text of={run.subject ?? run.workflow} /> <Id of={run.run_id} />
          </li>
        ))}
        {count > 5 && <li className="quiet">and {(count - 5).toLocaleString()} more</li>}
      </ul>
      <Select name="action" label="Action" value={action} onChange={(event) => setAction(event.target.value as Action)} hint={EFFECT[action]}>
        <option value="cancel">Cancel</option>
        <option value="retry">Retry</option>
        <option value="resume">Resume</option>
      </Select>
      {action === 'cancel' && <Check name="rollback" label="Undo what they have done first" />}
      <Reason />
      <p className="hint">The job acts on exactly these runs, and is refused if their number has changed.</p>
    </FormDialog>
  );
}
