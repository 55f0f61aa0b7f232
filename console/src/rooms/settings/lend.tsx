import { useState } from 'react';
import { api, intention, must } from '../../api/client';
import { Confirm } from '../../parts/confirm';
import { Input, Reason, text } from '../../parts/form';

const DAYS_MAX = 90;

/** A person lends their right to decide to another. */
export function Lend({ close }: { close: () => void }) {
  const [key] = useState(intention);
  async function lend(form: FormData) {
    const until = Date.now() + Number(text(form, 'days')) * 86_400_000;
    const delegate = text(form, 'delegate');
    await must(api.POST('/api/v1/delegations', { headers: key, body: { delegate, until, reason: text(form, 'reason') } }));
    return `${delegate} may decide for you. Settings → Delegations takes it back.`;
  }
  return (
    <Confirm title="Lend my right to decide" verb="Lend it" what="They may decide wherever you may. You two count as one person." changes="delegations" act={lend} close={close}>
      <Input name="delegate" label="To whom" required hint="The name by which they sign in." />
      <Input name="days" label="For how many days" type="number" min={1} max={DAYS_MAX} defaultValue={14} required />
      <Reason />
    </Confirm>
  );
}
