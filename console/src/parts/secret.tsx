import type { ReactNode } from 'react';
import { Button } from './button';
import { Dialog } from './dialog';
import { Command } from './notes';

/** A secret that the server tells this once. */
export function SecretDialog({ title, secret, children, close }: { title: string; secret: string; children?: ReactNode; close: () => void }) {
  return (
    <Dialog title={title} close={close}>
      <p>This is shown once. Store it now where it belongs; a lost one has to be replaced by another.</p>
      <Command text={secret} />
      {children}
      <footer>
        <Button look="primary" onClick={close}>
          I have it
        </Button>
      </footer>
    </Dialog>
  );
}
