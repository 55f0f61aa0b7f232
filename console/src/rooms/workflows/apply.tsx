/** A workflow file, checked by the server while it is written, then applied as a new version. */

import { useState } from 'react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { ProblemNote } from '../../parts/notes';
import { useSay } from '../../parts/toast';
import { Text } from '../../parts/text';
import { at, go } from '../../route/router';

export function ApplyDialog({ source, close }: { source: string; close: () => void }) {
  const [text, setText] = useState(source);
  const say = useSay();
  const queries = useQueryClient();
  const check = useMutation({ mutationFn: () => must(api.POST('/api/v1/workflows/validate', { body: { source: text } })) });
  const apply = useMutation({
    mutationFn: () => must(api.POST('/api/v1/workflows', { body: { source: text } })),
    onSuccess: ({ workflow, version, created }) => {
      say(created ? `Version ${version} is applied.` : `This is version ${version} already.`);
      void queries.invalidateQueries({ queryKey: ['workflows'] });
      void queries.invalidateQueries({ queryKey: ['workflow', workflow] });
      close();
      go(at('workflows', workflow));
    },
  });
  return (
    <Dialog title="Apply a workflow file" close={close} wide>
      <textarea className="code editor" aria-label="The workflow file" value={text} spellCheck={false} rows={18} onChange={(event) => setText(event.target.value)} />
      <div role="status">{check.data !== undefined && <Diagnostics of={check.data} />}</div>
      {check.error !== null && <ProblemNote error={check.error} />}
      {apply.error !== null && <ProblemNote error={apply.error} />}
      <p className="hint">Runs that are under way keep the version that they were started with.</p>
      <footer>
        <Button onClick={() => check.mutate()} busy={check.isPending}>
          Check
        </Button>
        <Button look="primary" onClick={() => apply.mutate()} busy={apply.isPending}>
          Apply
        </Button>
      </footer>
    </Dialog>
  );
}

function Diagnostics({ of }: { of: Schema['Validation'] }) {
  if (of.diagnostics.length === 0) return <p className="good">Nothing is wrong with it.</p>;
  return (
    <ul className="diagnostics">
      {of.diagnostics.map((found, index) => (
        <li key={index} className={found.severity}>
          <span className="mono">
            {found.line}:{found.column}
          </span>{' '}
          <Text of={found.message} />
          {found.help != null && (
            <span className="quiet">
              {' '}
              <Text of={found.help} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
