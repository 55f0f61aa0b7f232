/** What can be done about an endpoint, in either direction: switch it off and on, rotate its secret, remove it. */

import { useState, type ReactNode } from 'react';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Confirm } from '../../parts/confirm';
import { SecretDialog } from '../../parts/secret';
import { go } from '../../route/router';

/** The words of one action, and the action. */
interface Deed<T> {
  title: string;
  what: string;
  fields?: ReactNode;
  act: (form: FormData) => Promise<T>;
}

interface Props {
  /** First word of the questions that the actions change. */
  changes: string;
  turn: Deed<unknown> & { verb: string };
  /** Answers the new secret. */
  rotate: Deed<string | null | undefined>;
  remove: Deed<unknown>;
}

export function EndpointActions({ changes, turn, rotate, remove }: Props) {
  const defines = useMay('define');
  const [doing, setDoing] = useState<'turn' | 'rotate' | 'remove'>();
  const [secret, setSecret] = useState<string>();
  const dialog = { changes, close: () => setDoing(undefined) };
  if (!defines) return null;
  return (
    <>
      <Button onClick={() => setDoing('turn')}>{turn.verb} …</Button>
      <Button onClick={() => setDoing('rotate')}>Rotate the secret …</Button>
      <Button onClick={() => setDoing('remove')}>Remove …</Button>
      {doing === 'turn' && (
        <Confirm {...dialog} title={turn.title} verb={turn.verb} what={turn.what} act={async (form) => void (await turn.act(form))}>
          {turn.fields}
        </Confirm>
      )}
      {doing === 'rotate' && (
        <Confirm {...dialog} title={rotate.title} verb="Rotate" what={rotate.what} act={async (form) => setSecret((await rotate.act(form)) ?? undefined)} />
      )}
      {doing === 'remove' && (
        <Confirm
          {...dialog}
          title={remove.title}
          verb="Remove"
          danger
          what={remove.what}
          act={async (form) => {
            await remove.act(form);
            go('/webhooks');
          }}
        />
      )}
      {secret !== undefined && <SecretDialog title="The new secret" secret={secret} close={() => setSecret(undefined)} />}
    </>
  );
}
