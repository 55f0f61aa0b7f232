import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, intention, must } from '../../api/client';
import { FormDialog, Input, maybe } from '../../parts/form';
import { go } from '../../route/router';

export function PushDialog({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [key] = useState(intention);
  async function push(form: FormData) {
    const given = form.getAll('files').filter((file): file is File => file instanceof File && file.size > 0);
    if (given.length === 0) throw new Error('Choose the files of the bundle: *.rego, data.json, and tests.');
    const files = Object.fromEntries(await Promise.all(given.map(async (file) => [file.name, await file.text()] as const)));
    const made = await must(api.POST('/api/v1/policy/versions', { headers: key, body: { files, note: maybe(form, 'note') } }));
    // A new version raises the policy's revision too.
    await queries.invalidateQueries({ queryKey: ['policy'] });
    go('/policy?tab=versions');
    return `Version ${made.version} is there. It is not in force yet.`;
  }
  return (
    <FormDialog title="New version of the policy" verb="Give it" close={close} act={push}>
      <p>The rules are checked and the bundle’s own tests must pass. It is not in force by that: try it, replay it, then decide.</p>
      <Input name="files" label="Files of the bundle" type="file" multiple accept=".rego,.json" required hint="All of them, marked together. The rules replace those of the default policy: export that and add to it." />
      <Input name="note" label="Why (optional)" maxLength={200} />
    </FormDialog>
  );
}
