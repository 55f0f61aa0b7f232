/** A workflow file, checked by the server while it is written, then applied as a new version. */

import { useEffect, useRef, useState } from 'react';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, must } from '../../api/client';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { ProblemNote } from '../../parts/notes';
import { useSay } from '../../parts/toast';
import { at, go } from '../../route/router';
import { Diagnostics, validationQuery } from './diagnostics';

/** How long typing has to pause before the text is checked. */
const PAUSE_MS = 500;

/** The text as of the last pause in typing. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

export function ApplyDialog({ source, close }: { source: string; close: () => void }) {
  const [text, setText] = useState(source);
  const editor = useRef<HTMLTextAreaElement>(null);
  const settled = useSettled(text);
  const say = useSay();
  const queries = useQueryClient();
  const check = useQuery({ ...validationQuery(settled), placeholderData: keepPreviousData, enabled: settled.trim() !== '' });
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
  function goTo(line: number, column: number) {
    const area = editor.current;
    if (area === null) return;
    const at = placeIn(text, line, column);
    area.focus();
    area.setSelectionRange(at, at);
  }
  return (
    <Dialog title="Apply a workflow file" close={close} wide>
      <textarea ref={editor} className="code editor" aria-label="The workflow file" value={text} spellCheck={false} rows={18} onChange={(event) => setText(event.target.value)} />
      <div role="status">{check.data !== undefined && <Diagnostics of={check.data} goTo={goTo} />}</div>
      {check.error !== null && <ProblemNote error={check.error} />}
      {apply.error !== null && <ProblemNote error={apply.error} />}
      <p className="hint">Runs that are under way keep the version that they were started with.</p>
      <footer>
        <Button onClick={close}>Not now</Button>
        <Button look="primary" onClick={() => apply.mutate()} busy={apply.isPending}>
          Apply
        </Button>
      </footer>
    </Dialog>
  );
}

/** Where a line and a column, both from one, stand in a text. */
export function placeIn(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return Math.min(text.length, before + Math.min(Math.max(0, column - 1), lines[line - 1]?.length ?? 0));
}
