/** A question with one sentence about what will happen. The words come first, the deed after. */

import type { ReactNode } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { FormDialog } from './form';

interface Props {
  title: string;
  verb: string;
  danger?: boolean;
  /** What will happen. */
  what: string;
  /** Fields, where it takes any. */
  children?: ReactNode;
  act: (form: FormData) => Promise<string | void>;
  /** First word of the questions whose answers change by it. */
  changes: string;
  close: () => void;
}

export function Confirm({ what, children, act, changes, ...dialog }: Props) {
  const queries = useQueryClient();
  async function confirmed(form: FormData) {
    const said = await act(form);
    void queries.invalidateQueries({ queryKey: [changes] });
    return said;
  }
  return (
    <FormDialog {...dialog} act={confirmed}>
      <p>{what}</p>
      {children}
    </FormDialog>
  );
}
